"""What is typical of outputs: their columns, and what quantisation costs them."""
