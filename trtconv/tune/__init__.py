"""The search for the fastest engine that keeps a contract."""
