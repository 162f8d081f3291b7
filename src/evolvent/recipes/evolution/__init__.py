"""Recipes of the family evolution: populations instead of gradients."""
