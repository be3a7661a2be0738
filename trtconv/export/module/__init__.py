"""The user's module: found, loaded, bound to its inputs and run."""
