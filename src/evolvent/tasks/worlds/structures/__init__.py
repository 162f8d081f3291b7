"""Reasoning structures, keyed steps that are filled in for each problem of a task, and a scripted solver of them."""
