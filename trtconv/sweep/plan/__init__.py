"""What a sweep is going to do: the file that asks for it, its cells, and the jobs that make them."""
