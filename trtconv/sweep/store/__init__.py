"""Where the files of finished jobs are: shared by all workers and by all sweeps that name it."""
