"""Engines packed for a server."""
