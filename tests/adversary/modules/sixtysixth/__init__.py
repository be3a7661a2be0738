"""The sixty-sixth round of attacks."""
