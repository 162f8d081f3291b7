"""Games with hidden information, and ways to find their equilibria: regret minimisation, populations of policies."""
