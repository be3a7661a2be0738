"""Ways through a module that depend on sizes or values."""
