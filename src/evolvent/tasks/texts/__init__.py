"""Named texts as what a search evolves: prompts of a system, instructions, anything that is no program."""

TEXT_FILES = (".toml", ".json", ".txt", ".md")  # that texts to begin with are read from
