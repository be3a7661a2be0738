"""The fifty-seventh round of attacks."""
