"""Modules that attack the promise, by class."""
