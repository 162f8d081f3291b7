"""Variation: new program texts from old ones, by edits that a model writes or by operators on the syntax tree."""
