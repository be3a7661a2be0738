"""State that lasts from call to call, in a module and outside of it. An engine has none."""
