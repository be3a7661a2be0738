"""The sizes for which a file holds, and numbers that tracing baked in."""
