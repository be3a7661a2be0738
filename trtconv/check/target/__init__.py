"""Whether a target takes a graph, node by node, without a GPU."""
