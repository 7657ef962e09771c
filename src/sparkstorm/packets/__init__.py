"""Packets: what one task sends to another in one go, as bytes.

:mod:`packet` has the layout, :mod:`columns` the values, :mod:`hashing` the hash of fields
grouping, :mod:`inbox` the packets that one task received, :mod:`load` the messages that one
partition reads, :mod:`batch_info` the facts of a batch that every task knows.
"""
