"""What followed up the first five files."""
