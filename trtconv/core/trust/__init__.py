"""Who made a set of files: signing it, verifying it before it is used, and what the signature says of it."""
