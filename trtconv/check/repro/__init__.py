"""The smallest part of a model that still fails."""
