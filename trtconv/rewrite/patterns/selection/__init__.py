"""Values selected by a mask, read as an expression over all places."""
