"""Packets: all that a task sends to another in one go, as bytes.

:mod:`packet` has the layout, :mod:`columns` the values (typed ones by :mod:`fitting`, pickled ones
by :mod:`pickles`), :mod:`encoding` and :mod:`failures` the bytes of columns and of failed roots,
:mod:`hashing` the hash of fields grouping. :mod:`inbox` has the packets of a receiving task,
:mod:`exclusion` the tuples left out of them, :mod:`load` the messages that a partition reads,
:mod:`batch_info` the facts of a batch that every task knows.
"""
