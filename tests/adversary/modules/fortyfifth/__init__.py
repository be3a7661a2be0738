"""Round 45: lengths, values, objects and scenes, and floats of two sizes that are cut."""
