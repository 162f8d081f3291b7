"""Recipes of the family self-play: roles that make each other better."""
