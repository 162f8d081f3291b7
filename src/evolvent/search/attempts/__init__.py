"""Attempts at one bug: strategies for them, what is remembered of each, and which of them is handed in."""
