"""Recipes of the family test time: learning from problems without labels."""
