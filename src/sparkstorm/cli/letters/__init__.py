"""The command ``dead-letters``."""
