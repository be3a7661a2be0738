"""The sixty-seventh round of attacks."""
