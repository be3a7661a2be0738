"""The sixty-fifth round of attacks."""
