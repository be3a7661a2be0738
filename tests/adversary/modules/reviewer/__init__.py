"""What a malicious reviewer writes, by class."""
