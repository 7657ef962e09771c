"""The command line: ``sparkstorm run``, ``explain`` and ``new``."""
