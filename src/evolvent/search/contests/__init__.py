"""Contests: a few agents at a time answer the same questions, and ratings over all contests say who is good."""
