"""Evolving teams of agents: what went wrong in a trajectory, edits of one component, crossing, experience."""
