"""What low precision costs and gains on a GPU."""
