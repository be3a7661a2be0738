"""The sixty-third round of attacks."""
