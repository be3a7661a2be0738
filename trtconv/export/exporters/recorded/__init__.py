"""What torch's recording exporter writes otherwise than torch computes it, in forms of our own."""
