"""Runs in the process that Spark starts on the driver's host to plan the source."""
