"""Strategies that clean data, evolved category by category."""
