"""What modules hold, and what a call writes into it."""
