"""The fifty-eighth round of attacks."""
