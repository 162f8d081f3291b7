"""Search: programs, prompts and agents evolve by variation, evaluation and selection; no weights."""
