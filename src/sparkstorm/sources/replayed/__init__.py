"""Replayed dead letters: they run again as messages of their spouts."""
