"""The decisions that a module takes by its sizes, followed over the whole shape space."""
