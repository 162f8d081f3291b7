"""Recipes of the family search."""
