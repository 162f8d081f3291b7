"""Recipes of the family curriculum: what to learn from next."""
