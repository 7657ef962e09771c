"""Runs in the driver's own Python process."""
