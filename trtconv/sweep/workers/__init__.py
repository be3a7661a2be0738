"""Where jobs run: the function that a worker calls, and the pools of workers that the driver hands jobs to."""
