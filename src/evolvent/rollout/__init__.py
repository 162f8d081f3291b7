"""Roll out: act, sample, branch, call tools, under a controller that allocates and prunes."""
