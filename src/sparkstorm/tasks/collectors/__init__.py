"""Collectors: components emit into them; they record emits and acks, and send nothing."""
