"""Reading untrusted `.pt2` files: everything that torch is given has been checked, byte for byte."""
