"""The end of kept processes on the executors of a session that goes on after the run."""

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sparkstorm.components.bolt import AnyBolt
from sparkstorm.planning.plan import Plan
from sparkstorm.processes.client import end_keeper
from sparkstorm.spark.driver.session import is_local
from sparkstorm.texts.logs import logger_of

__all__ = ["end_kept_processes"]

_TASKS_PER_CORE = 4
"""More tasks than cores, so that each executor is likely to get one."""

_logger = logger_of(__name__)


def end_kept_processes(session: SparkSession, plan: Plan, run: str) -> None:
    """End the keepers of a run, here and on the executors.

    Those of executors that end with the session end by themselves. Where the session goes on, a
    small job tells them; best effort, since Spark does not promise a task to each executor.
    """
    end_keeper(run)
    bolts = [spec.component for spec in plan.topology.bolts]
    if not any(isinstance(bolt, AnyBolt) and bolt.keeps_process for bolt in bolts):
        return
    try:
        context = session.sparkContext
        if is_local(str(context.master)):
            return
        count = _TASKS_PER_CORE * context.defaultParallelism
        context.parallelize(range(count), count).foreach(lambda _: end_keeper(run))
    except (Py4JError, PySparkException, OSError) as error:
        # The JVM is gone, and its executors with it, or the session was stopped.
        _logger.debug("the keepers of child processes were not told: %s", error)
