"""Finding the numbers that tracing baked into a graph, by tracing again at other sizes, and making them follow."""
