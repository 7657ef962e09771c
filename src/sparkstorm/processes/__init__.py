"""Kept processes: a keeper per node and run owns them, workers attach to them for a batch.

:mod:`keeper` is a program of its own that imports nothing of ours; :mod:`journal` is its memory of
output, :mod:`client` the worker's side.
"""
