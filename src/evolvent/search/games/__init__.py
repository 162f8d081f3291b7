"""Games that evolve by their mechanics: planned before they are written, played by a bot, rewarded by what changed."""
