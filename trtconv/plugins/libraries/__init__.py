"""Compiled plugin libraries: built, found, loaded by version."""
