"""Reading `.pt2` files of strangers: what torch is given was checked before, byte for byte."""
