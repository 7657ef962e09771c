"""A spout task's side in the driver: connections, news, progress, and records that are kept.

:mod:`follower` opens and closes the connections. :mod:`watch` asks a cluster for news,
:mod:`keeper` keeps the records of failed messages, :mod:`sizes` knows how large records are.
"""
