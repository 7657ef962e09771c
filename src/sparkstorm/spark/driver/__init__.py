"""Code of the driver's own Python process."""
