"""Round 52: written from the promise, without a look at the code."""
