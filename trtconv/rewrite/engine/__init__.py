"""Rules applied, proved and recorded."""
