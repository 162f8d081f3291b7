"""Small text games, which an agent plays several times: rules, generator, and a scripted player and adviser."""
