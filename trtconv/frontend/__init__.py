"""What the command line and the Python door share: options as requests, a conversion with its stamp, summaries."""
