"""Spark's Python daemon, with all modules of a worker loaded.

Spark runs this module (``spark.python.daemon.module``) and forks its workers from the daemon. So
the replacement of a killed worker starts in milliseconds; importing pandas, pyarrow and sparkstorm
anew takes a second on a quiet machine.
"""

import gc

import pandas  # noqa: F401 - PySpark loads it in every worker that runs mapInArrow
from pyspark import daemon

__all__: list[str] = []

if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # so that forked workers share these pages, and their collector skips them
    daemon.manager()
