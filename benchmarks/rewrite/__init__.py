"""How the rewriter scales, and what it does to models that others wrote."""
