"""Times of engines, of the command line and of exporting."""
