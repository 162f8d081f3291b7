"""Agents that repair small programs with planted faults, and rewrite themselves."""
