"""The forty-third round: ways by size, loops, memory that is shared, values at their ends, models."""
