"""Runs in the executors' Python processes."""
