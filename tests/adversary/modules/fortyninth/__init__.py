"""Round 49: written from the promise, without a look at the code."""
