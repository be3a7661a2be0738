"""The driver: which job is next, what a result means for the others, and the loop around both."""
