"""Complex numbers, of which the exporters know few functions, in real ones."""
