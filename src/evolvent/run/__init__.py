"""Run: one experiment, from its description to its report."""
