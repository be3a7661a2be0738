"""Where to look and what counts as equal. Every room proves its step with these means."""
