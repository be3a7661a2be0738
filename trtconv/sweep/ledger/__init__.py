"""What was done: every attempt at every job of every sweep into an atlas, in a file that survives the driver."""
