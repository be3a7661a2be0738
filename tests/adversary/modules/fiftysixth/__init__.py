"""The fifty-sixth round of attacks."""
