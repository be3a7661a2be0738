"""The power of a check: faults are put into a graph one at a time; those that the comparison reports are counted."""
