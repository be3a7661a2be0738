"""What an original loses by computing in its own precision, and what of it is allowed to others."""
