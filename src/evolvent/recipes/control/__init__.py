"""Recipes of the family control."""
