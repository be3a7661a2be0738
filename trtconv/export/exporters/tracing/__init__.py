"""Tracing with torch.export over a shape space."""
