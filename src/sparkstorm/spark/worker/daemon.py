"""Spark's Python daemon, with all modules of a worker loaded.

Spark runs this module (``spark.python.daemon.module``) and forks its workers from the daemon. So a
worker starts in milliseconds, the first ones and the replacement of a killed one, and all workers
share the memory of what the daemon has loaded.
"""

import gc
from importlib import import_module

__all__: list[str] = []

_LOADED = (
    "asyncio",  # concurrent bolts need it, and loading it takes long
    "pandas",  # PySpark loads it in every worker that runs mapInArrow
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "pyspark.sql.streaming.stateful_processor_util",
    "pyspark.worker",
    "sparkstorm.config",
    "sparkstorm.spark.worker.processor",
    "sparkstorm.spark.worker.stages",
)

if __name__ == "__main__":
    gc.disable()  # it takes a fifth of the time of imports, and finds next to nothing
    for module in _LOADED:
        import_module(module)
    gc.enable()
    gc.freeze()  # so that forked workers share these pages, and their collector skips them
    import_module("pyspark.daemon").manager()
