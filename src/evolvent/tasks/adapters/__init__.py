"""Tasks out of what other projects call an environment. Nothing of theirs is imported before it is asked for."""
