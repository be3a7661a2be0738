"""Where a difference arises."""
