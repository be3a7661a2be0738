"""Arguments that take plain numbers, from sizes and from values."""
