"""The thirteenth round of attacks."""
