"""Learn: credit, objectives, preference and supervised losses, evolution strategies."""
