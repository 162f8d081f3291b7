"""Adaptation policies: what they are worth in inner runs, and how their strategy sections change."""
