"""Round twenty-one: by a session that had not read the code; the counts are of its first run."""
