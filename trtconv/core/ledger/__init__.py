"""The ledger, `model.rewrites.json`: what a rewrite did to a graph, each step with its proof."""
