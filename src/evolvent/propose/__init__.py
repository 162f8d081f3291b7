"""Propose: what to work on next."""
