"""Collectors: components emit into them. Collectors record emits and acks, and send nothing.

:mod:`emission` has the collectors, :mod:`outbox` the emitted tuples, :mod:`loops` the loops that
call ``execute`` with each tuple.
"""
