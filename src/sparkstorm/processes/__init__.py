"""Kept processes: a keeper per node and run owns them, workers attach to them for a batch.

:mod:`keeper` is a program of its own, without imports from sparkstorm; :mod:`client` is the
worker's side; :mod:`owner` finds the process for which children run.
"""
