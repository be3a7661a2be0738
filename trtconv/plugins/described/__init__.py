"""trtconv's plugins, each described once."""
