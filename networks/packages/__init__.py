"""One file for each package of networks."""
