"""One plugin node in place of several, where the user asks for it."""
