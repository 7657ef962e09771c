"""The other side of each comparison: one script per peer, each prints one JSON line."""
