"""Exporting loops over sizes: the parts that loop are scripted, so that the file holds the loop and no run of it."""
