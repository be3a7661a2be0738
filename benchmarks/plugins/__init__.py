"""Times of the plugins, alone and in engines."""
