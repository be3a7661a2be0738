"""What a file keeps of the sizes at which it was made, though the module does otherwise at others."""
