"""Bench: evaluation, comparison at equal budget, claims and their statistics."""
