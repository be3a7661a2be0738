"""The fifty-ninth round of attacks."""
