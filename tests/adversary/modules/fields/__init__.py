"""Parts of networks as they are shipped, by field."""
