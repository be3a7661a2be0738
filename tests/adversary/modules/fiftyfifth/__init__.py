"""The fifty-fifth round: pieces of vision, speech, serving, scans, ranking, Python's ways and numbers."""
