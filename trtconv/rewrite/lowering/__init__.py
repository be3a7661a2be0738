"""Older opsets and narrower types for targets that need them."""
