"""The sixty-first round of attacks."""
