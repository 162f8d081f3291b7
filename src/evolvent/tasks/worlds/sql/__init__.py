"""The world `sql`: generated databases, questions about them in templated English, and agents that answer in SQL."""
