"""What is left to tidy once the other rules are done."""
