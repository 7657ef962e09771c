"""The command line: ``sparkstorm run``, ``explain``, ``dead-letters`` and ``new``."""
