"""Attention that targets compute wrongly."""
