"""Recurrent layers that targets lack."""
