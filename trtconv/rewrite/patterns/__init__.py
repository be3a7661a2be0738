"""Forms that several rules read or write."""
