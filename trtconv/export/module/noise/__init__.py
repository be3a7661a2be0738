"""What of a module's outputs is noise: random numbers, runs that differ, rounding."""
