"""Groups by model: what networks are made of, and the Python around the layers."""
