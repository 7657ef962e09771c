"""The other sides of the comparisons: one script for each peer, which prints one JSON line."""
