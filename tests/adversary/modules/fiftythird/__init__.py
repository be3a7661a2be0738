"""Round 53: written from the promise, without a look at the code."""
