"""Spark's Python daemon, with all modules of a worker loaded.

Spark runs this module (``spark.python.daemon.module``) and forks its workers from the daemon. So a
worker starts in milliseconds, the first ones and the replacement of a killed one, and all workers
share the memory of what the daemon has loaded.
"""

import asyncio  # noqa: F401 - concurrent bolts need it, and loading it takes long
import gc

import pandas  # noqa: F401 - PySpark loads it in every worker that runs mapInArrow
import pyspark.sql.streaming.proto.StateMessage_pb2
import pyspark.sql.streaming.stateful_processor_util
import pyspark.worker  # noqa: F401
from pyspark import daemon

import sparkstorm.config
import sparkstorm.spark.worker.stages  # noqa: F401

__all__: list[str] = []

if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # so that forked workers share these pages, and their collector skips them
    daemon.manager()
