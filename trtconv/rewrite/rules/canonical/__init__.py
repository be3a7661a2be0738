"""Forms that every size and every target takes."""
