"""Partitioned spouts: the driver sees offsets, executors read the messages."""
