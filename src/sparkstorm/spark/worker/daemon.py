"""Spark's Python daemon with everything loaded that a worker needs.

Workers are forked from it. One that replaces a killed worker then starts in milliseconds instead
of importing pandas, pyarrow and ourselves anew, which takes a second on a quiet machine. Run by
Spark as a module (``spark.python.daemon.module``).
"""

import gc

import pandas  # noqa: F401 - PySpark loads it in every worker that runs mapInArrow
from pyspark import daemon

__all__: list[str] = []

if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # so that forked workers share these pages, and their collector skips them
    daemon.manager()
