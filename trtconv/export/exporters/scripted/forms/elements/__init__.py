"""Lists and dictionaries of a function written with a variable for each element."""
