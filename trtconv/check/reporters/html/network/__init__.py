"""A network as a picture that one can walk through: its nodes and edges as data, laid out in the browser."""
