"""The sixty-second round of attacks."""
