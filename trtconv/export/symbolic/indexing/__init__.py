"""What is read from and written into tensors by masks and indices."""
