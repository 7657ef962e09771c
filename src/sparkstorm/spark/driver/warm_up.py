"""The warm-up: Spark's Python workers, started while the driver does other things.

A worker takes a second to start, and Java's first job with Python takes seconds. Both would come
one after another, before the first batch.
"""

import threading
from typing import Any

from pyspark.sql import SparkSession

from sparkstorm.spark.driver.session import session_apart
from sparkstorm.spark.rows import unchanged

__all__ = ["warm_workers"]


def warm_workers(session: SparkSession) -> None:
    """Start a worker for each task that the session runs at once, on a thread of its own."""
    threading.Thread(
        target=_run_once, args=[session], name="sparkstorm-warm-up", daemon=True
    ).start()


def _run_once(session: Any) -> None:
    tasks = session.sparkContext.defaultParallelism
    try:
        # Spark keeps workers apart by their environment, which comes from the session's settings.
        rows = session_apart(session).range(0, tasks, 1, tasks)
        # The rows stay in Java. Were they read here, by Arrow's C++ on a daemon thread, a process
        # that exits meanwhile would be aborted.
        rows.mapInArrow(unchanged, rows.schema).write.format("noop").mode("append").save()
    except Exception:  # noqa: BLE001, S110 - a real job will tell what is wrong, or nothing is:
        pass  # the session may have been stopped meanwhile
