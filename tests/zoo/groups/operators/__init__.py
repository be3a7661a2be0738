"""Groups by operator: what a layer or a function does."""
