"""Teams of agents with tools that answer questions of several steps; a team is a configuration, never code."""
