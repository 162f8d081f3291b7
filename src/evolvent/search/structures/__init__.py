"""Reasoning structures: modules are proposed for a task, made a structure of keyed steps, and refined."""
