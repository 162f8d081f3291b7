"""Recipes of the family preference."""
