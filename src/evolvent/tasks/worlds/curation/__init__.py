"""Curation: rules that clean the documents of a noisy corpus, category by category."""
