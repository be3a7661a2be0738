"""What stands in for a function of torch while it is recorded."""
