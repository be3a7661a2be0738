"""The user's own data: read without pickle, split into parts that never mix, refused where it shows nothing."""
