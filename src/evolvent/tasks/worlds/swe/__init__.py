"""Agents that repair small repositories with planted faults, whose own pytest suites decide."""
