"""The named dims of a model with their ranges, and what narrows, widens or pads them."""
