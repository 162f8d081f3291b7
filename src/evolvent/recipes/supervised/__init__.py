"""Recipes of the family supervised."""
