"""PostgreSQL: a sink of transactions, and a table that is read as a queue.

They need an extra, in the driver and on the executors: ``pip install 'sparkstorm[postgres]'``.
"""

from sparkstorm.postgres.ddl import queue_ddl
from sparkstorm.postgres.queue import PostgresQueue
from sparkstorm.postgres.sink import PostgresSink
from sparkstorm.postgres.spout import PostgresQueueSpout
from sparkstorm.postgres.table import QueueTable

__all__ = ["PostgresQueue", "PostgresQueueSpout", "PostgresSink", "QueueTable", "queue_ddl"]
