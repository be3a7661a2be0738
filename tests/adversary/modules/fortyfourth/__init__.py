"""The forty-fourth round: rare sizes, rare values, state and aliases, scenes, operators that are seldom used."""
