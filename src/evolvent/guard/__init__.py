"""Guard: gates, sandboxes, drift probes."""
