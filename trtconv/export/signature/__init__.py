"""What a module or an exported program says of its inputs, for a request or a config that names none."""
