"""Recipes of the family policy gradient."""
