"""Round 47: sight, speech, structure of code, numbers, series and points."""
