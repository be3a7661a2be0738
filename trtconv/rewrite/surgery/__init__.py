"""Scripts that change a whole graph-surgeon graph: run, proved, and written down like a rule's work."""
