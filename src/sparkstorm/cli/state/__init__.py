"""The command ``state``."""
