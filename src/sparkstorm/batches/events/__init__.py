"""Beside messages: tick tuples, tapped tuples, and roots that ended while a task holds them."""
