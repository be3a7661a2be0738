"""Shape spaces narrowed or padded before the rules run."""
