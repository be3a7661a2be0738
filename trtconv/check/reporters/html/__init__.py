"""Reports and graphs as HTML files that need nothing else."""
