"""Code of the executors' Python processes."""
