"""Recipes of the family rollout: how episodes are sampled, kept and used again."""
