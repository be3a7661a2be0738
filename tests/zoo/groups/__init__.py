"""The cases of the zoo, a file per group."""
