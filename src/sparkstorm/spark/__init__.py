"""The Spark shell: the only package that imports PySpark.

The folders say where code runs: ``driver`` in the driver's own Python, ``reader`` in the process
that Spark starts on the driver's host to plan the source, ``worker`` in the executors' Python.
They meet in :mod:`link` (messages between driver and reader), :mod:`rows` (what moves) and
:mod:`own_classes` (the user's, where they cannot be imported).
"""
