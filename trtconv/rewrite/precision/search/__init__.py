"""Which nodes half precision cannot take, by bisection."""
