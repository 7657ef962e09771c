"""The Spark shell: the only package that imports PySpark.

Start with :mod:`runner`: ``submit`` starts the parts of a run in order, :mod:`run` is the handle
that users get. :mod:`lowering` turns a plan into Spark's streaming query.

The folders say where code runs: ``driver`` in the driver's own Python, ``worker`` in the executors'
Python. They share :mod:`rows` (the rows that Spark moves) and :mod:`own_classes` (classes of the
user's script, for workers that cannot import the script).
"""

from pyspark.sql import SparkSession

__all__ = ["register"]


def register(session: SparkSession) -> None:
    """Make ``spark.read.format("sparkstorm")`` known to a session: a checkpoint as tables.

    See :func:`sparkstorm.spark.tables.source.register`.
    """
    from sparkstorm.spark.tables import source  # workers, who need no tables, load this package

    source.register(session)
