"""Hosted spouts: their tasks live in the driver, each on a thread of its own."""
