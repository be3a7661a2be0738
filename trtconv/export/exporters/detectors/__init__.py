"""Functions of torchvision's detectors that ask how many rows there are, in forms that do not."""
