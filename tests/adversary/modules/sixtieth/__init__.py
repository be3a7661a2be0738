"""The sixtieth round of attacks."""
