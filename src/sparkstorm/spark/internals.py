"""The private parts of Spark that we lean on: touched here, and listed with the reason for each.

Nothing here is in Spark's documentation, so another build may lack it. ``NEEDS`` is the list,
:mod:`driver.self_test` holds it against the Spark that runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, final

from pyspark import SparkContext
from pyspark.sql import SparkSession

__all__ = [
    "LOCAL_FILE_MANAGER",
    "NEEDS",
    "ROCKSDB_PROVIDER",
    "Need",
    "Vital",
    "accumulator_server",
    "active_context",
    "cleaner_of",
    "forget_context",
    "gateway_of",
    "hadoop_configuration",
    "is_stopped",
    "java_cause",
    "java_stack",
    "physical_plan",
    "state_client",
    "worker_environment",
]

_SQL = "org.apache.spark.sql.execution"
_STREAMING = f"{_SQL}.streaming"

LOCAL_FILE_MANAGER = f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
ROCKSDB_PROVIDER = f"{_STREAMING}.state.RocksDBStateStoreProvider"


@final
class Vital(Enum):
    """The topologies whose results could be wrong without a part; they are refused then."""

    NONE = "none"
    ALL = "all"
    STATE = "those with state, or with processing.guarantee exactly-once"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A private part of Spark.

    Attributes:
        owner: the class: of Java's if its name has dots and a package of Spark's, else Python's.
        name: its method or attribute; empty if the class is all we need.
        takes: the types of a Java method's arguments.
        why: what we do with it.
        since: the first version of Spark that has it, as far as we know.
        without: what is off where it is missing.
        vital: who is refused without it.
    """

    owner: str
    name: str = ""
    takes: Sequence[str] = ()
    why: str
    since: str
    without: str
    vital: Vital = Vital.NONE

    @property
    def is_java(self) -> bool:
        """Whether the owner is a class of Java's."""
        return self.owner.startswith("org.apache.")

    def __str__(self) -> str:
        short = self.owner.rpartition(".")[2]
        return f"{short}.{self.name}" if self.name else short


NEEDS: tuple[Need, ...] = (
    Need(
        owner="pyspark.SparkContext",
        name="_gateway",
        why="the driver's JVM: whether it lives, Hadoop's file systems, the rest of this list",
        since="1.0",
        without="nothing runs",
        vital=Vital.ALL,
    ),
    Need(
        owner="pyspark.SparkContext",
        name="_jsc",
        why="whether the context was stopped, Hadoop's configuration, the cleaner",
        since="1.0",
        without="nothing runs",
        vital=Vital.ALL,
    ),
    Need(
        owner="pyspark.SparkContext",
        name="_active_spark_context",
        why="a session that this process has is used, not replaced",
        since="1.0",
        without="submit needs its argument session where a session runs",
    ),
    Need(
        owner="pyspark.SparkContext",
        name="_accumulatorServer",
        why="a JVM that was killed is told of once, without a trace for each of its connections",
        since="4.0",
        without="PySpark prints traces when its JVM is killed",
    ),
    Need(
        owner="pyspark.SparkContext",
        name="environment",
        why="another environment makes Spark start Python workers by another daemon",
        since="1.0",
        without="a Python daemon that dies as it starts may end the run",
    ),
    Need(
        owner="pyspark.errors.exceptions.captured.CapturedException",
        name="_stackTrace",
        why="the frames beside a text tell that a worker did not start",
        since="3.4",
        without="a Python worker that does not start may count as a failed query",
    ),
    Need(
        owner="pyspark.daemon",
        name="manager",
        why="our daemon loads what workers need, and then is Spark's",
        since="1.0",
        without="Python workers do not start in local mode",
        vital=Vital.ALL,
    ),
    Need(
        owner="pyspark.sql.streaming.stateful_processor_api_client.StatefulProcessorApiClient",
        name="set_implicit_key",
        why="each chunk of state is kept under a key of its own, which is 20 ms faster than a map",
        since="4.0",
        without="state cannot be kept",
        vital=Vital.STATE,
    ),
    Need(
        owner="pyspark.sql.streaming.StatefulProcessorHandle",
        name="_statefulProcessorApiClient",
        why="who sets that key",
        since="4.0",
        without="state cannot be kept",
        vital=Vital.STATE,
    ),
    Need(
        owner="pyspark.sql.streaming.StreamingQuery",
        name="_jsq",
        why="from PySpark's query to Spark's",
        since="2.0",
        without="no poison search: a batch whose job fails twice ends the run",
        vital=Vital.STATE,
    ),
    Need(
        owner=f"{_STREAMING}.runtime.StreamingQueryWrapper",
        name="streamingQuery",
        why="from the query to the batch that it runs",
        since="4.1",
        without="no poison search: a batch whose job fails twice ends the run",
        vital=Vital.STATE,
    ),
    Need(
        owner=f"{_STREAMING}.runtime.StreamExecution",
        name="lastExecution",
        why="from the query to the plan of the batch that it runs",
        since="4.1",
        without="no poison search: a batch whose job fails twice ends the run",
        vital=Vital.STATE,
    ),
    Need(
        owner=f"{_SQL}.QueryExecution",
        name="executedPlan",
        why="the physical plan of the batch that runs",
        since="2.0",
        without="no poison search: a batch whose job fails twice ends the run",
        vital=Vital.STATE,
    ),
    Need(
        owner=f"{_SQL}.SparkPlan",
        name="clone",
        why="a probe runs on a copy of the plan, whose exchanges and state are not the batch's",
        since="3.0",
        without="no poison search: a batch whose job fails twice ends the run",
    ),
    Need(
        owner=f"{_SQL}.SparkPlan",
        name="children",
        why="to find the stages with state in a plan",
        since="2.0",
        without="no exactly-once",
        vital=Vital.STATE,
    ),
    Need(
        owner=f"{_SQL}.python.streaming.TransformWithStateInPySparkExec",
        name="checkpointInfoAccumulator",
        why="Spark commits the state whose ids stand there; a stage with state is known by the "
        "name of its class",
        since="4.1",
        without="which run's state is committed cannot be told",
        vital=Vital.STATE,
    ),
    Need(
        owner="org.apache.spark.util.CollectionAccumulator",
        name="reset",
        why="so that Spark forgets the state of a run that is done again",
        since="2.0",
        without="which run's state is committed cannot be decided",
        vital=Vital.STATE,
    ),
    Need(
        owner="org.apache.spark.util.CollectionAccumulator",
        name="value",
        why="the ids of all states that Spark has of a partition, of which it would commit one",
        since="2.0",
        without="which run's state is committed cannot be told",
        vital=Vital.STATE,
    ),
    Need(
        owner=f"{_STREAMING}.operators.stateful.StatefulOpStateStoreCheckpointInfo",
        name="partitionId",
        why="whose state such an id is of",
        since="4.1",
        without="which run's state is committed cannot be told",
        vital=Vital.STATE,
    ),
    Need(
        owner="org.apache.spark.ContextCleaner",
        name="doCleanupShuffle",
        takes=("int", "boolean"),
        why="so that Spark forgets the outputs of a run that is done again",
        since="1.1",
        without="no exactly-once",
        vital=Vital.STATE,
    ),
    Need(
        owner="org.apache.spark.ShuffleDependency",
        name="shuffleId",
        why="to find the outputs of a run that is done again",
        since="1.0",
        without="no exactly-once",
        vital=Vital.STATE,
    ),
    Need(
        owner=ROCKSDB_PROVIDER,
        why="its second checkpoint format gives the state of each run an id",
        since="4.0",
        without="state cannot be kept",
        vital=Vital.STATE,
    ),
    Need(
        owner=LOCAL_FILE_MANAGER,
        why="a local checkpoint is written without a process for each file",
        since="4.1",
        without="no local checkpoint: give one on another file system",
        vital=Vital.ALL,
    ),
    Need(
        owner="org.apache.spark.api.python.PythonWorkerFactory",
        why="its frames tell an error of Spark's starting a worker from one of a worker at work",
        since="1.0",
        without="a Python worker that does not start may count as a failed query",
    ),
)


def gateway_of(context: SparkContext) -> Any:
    """Return py4j's gateway to the driver's JVM."""
    return context._gateway  # noqa: SLF001


def is_stopped(context: Any) -> bool:
    """Whether somebody stopped the context."""
    java = context._jsc  # noqa: SLF001
    return java is None or bool(java.sc().isStopped())


def cleaner_of(context: SparkContext) -> Any:
    """Return the optional cleaner of a context; its ``doCleanupShuffle`` forgets an output."""
    java: Any = context._jsc  # noqa: SLF001
    return java.sc().cleaner()


def hadoop_configuration(context: SparkContext) -> Any:
    """Return the configuration of Hadoop's file systems."""
    java: Any = context._jsc  # noqa: SLF001
    return java.hadoopConfiguration()


def active_context() -> SparkContext | None:
    """Return the context that this process has, whoever started it."""
    return SparkContext._active_spark_context  # noqa: SLF001


def accumulator_server(context: SparkContext) -> Any:
    """Return the server that workers' accumulators come in by; None if there is no such."""
    return getattr(context, "_accumulatorServer", None)


def worker_environment(context: SparkContext) -> dict[str, str]:
    """Return the environment that Python workers are started with; it may be changed."""
    environment: dict[str, str] = context.environment
    return environment


def forget_context(context: Any) -> None:
    """Stop a context whose JVM is gone, and let PySpark start another JVM."""
    context._jsc = None  # noqa: SLF001 - nothing to stop there any more
    context.stop()
    for owner, name in (
        (SparkContext, "_gateway"),
        (SparkContext, "_jvm"),
        (SparkSession, "_instantiatedSession"),
        (SparkSession, "_activeSession"),
    ):
        setattr(owner, name, None)


def java_stack(error: BaseException) -> str:
    """Return the frames of an error that PySpark took over from Java; else nothing."""
    return str(getattr(error, "_stackTrace", ""))


def java_cause(error: BaseException) -> BaseException | None:
    """Return the cause of an error that PySpark took over from Java, as such an error."""
    return getattr(error, "_cause", None)


def physical_plan(query: Any) -> Any:
    """Return the physical plan of the micro-batch that a streaming query runs."""
    return query._jsq.streamingQuery().lastExecution().executedPlan()  # noqa: SLF001


def state_client(handle: Any) -> Any:
    """Return who sends a stateful processor's requests; ``set_implicit_key`` sets their key."""
    return handle._statefulProcessorApiClient  # noqa: SLF001
