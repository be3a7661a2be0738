"""A subject run beside its reference, whole and layer by layer."""
