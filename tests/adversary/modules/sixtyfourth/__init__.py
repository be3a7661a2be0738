"""The sixty-fourth round of attacks."""
