"""The private parts of Spark that sparkstorm relies on: touched here alone, each with the reason.

Spark documents none of these parts, so another build may lack some. ``NEEDS`` lists the parts, and
:mod:`driver.self_test` looks for each in the running Spark. The parts that make a source in the
driver are in :mod:`source_internals`.
"""

from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from sparkstorm.spark.needs import Need, Vital
from sparkstorm.spark.source_internals import SOURCE_NEEDS

__all__ = [
    "LOCAL_FILE_MANAGER",
    "NEEDS",
    "ROCKSDB_PROVIDER",
    "accumulator_server",
    "active_context",
    "cleaner_of",
    "forget_context",
    "forget_gateway",
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
        why="a killed JVM makes one error message, without a trace for each of its connections",
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
        why="Java's frames show that a worker did not start; the text alone does not",
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
        why="the client that sets the key of a chunk",
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
        why="Spark commits the states whose ids this accumulator holds; the name of the class "
        "tells which stages have state",
        since="4.1",
        without="which run's state is committed cannot be told",
        vital=Vital.STATE,
    ),
    Need(
        owner="org.apache.spark.util.CollectionAccumulator",
        name="reset",
        why="makes Spark forget the states of a run that is repeated",
        since="2.0",
        without="sparkstorm cannot decide which run's state Spark commits",
        vital=Vital.STATE,
    ),
    Need(
        owner="org.apache.spark.util.CollectionAccumulator",
        name="value",
        why="the ids of all states of a partition; Spark would commit one of them",
        since="2.0",
        without="which run's state is committed cannot be told",
        vital=Vital.STATE,
    ),
    Need(
        owner=f"{_STREAMING}.operators.stateful.StatefulOpStateStoreCheckpointInfo",
        name="partitionId",
        why="the partition that a state's id belongs to",
        since="4.1",
        without="which run's state is committed cannot be told",
        vital=Vital.STATE,
    ),
    Need(
        owner="org.apache.spark.ContextCleaner",
        name="doCleanupShuffle",
        takes=("int", "boolean"),
        why="makes Spark forget the outputs of a run that is repeated",
        since="1.1",
        without="no exactly-once",
        vital=Vital.STATE,
    ),
    Need(
        owner="org.apache.spark.ShuffleDependency",
        name="shuffleId",
        why="finds the outputs of a run that is repeated",
        since="1.0",
        without="no exactly-once",
        vital=Vital.STATE,
    ),
    Need(
        owner=ROCKSDB_PROVIDER,
        why="with its second checkpoint format each run's state has an id",
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
    *SOURCE_NEEDS,
)


def gateway_of(context: SparkContext) -> Any:
    """Return py4j's gateway to the driver's JVM."""
    return context._gateway  # noqa: SLF001


def is_stopped(context: Any) -> bool:
    """Whether somebody stopped the context."""
    java = context._jsc  # noqa: SLF001
    return java is None or bool(java.sc().isStopped())


def cleaner_of(context: SparkContext) -> Any:
    """Return the optional cleaner of a context.

    Its ``doCleanupShuffle`` makes Spark forget an output.
    """
    java: Any = context._jsc  # noqa: SLF001
    return java.sc().cleaner()


def hadoop_configuration(context: SparkContext) -> Any:
    """Return the configuration of Hadoop's file systems."""
    java: Any = context._jsc  # noqa: SLF001
    return java.hadoopConfiguration()


def active_context() -> SparkContext | None:
    """Return the Spark context of this process, or None."""
    return SparkContext._active_spark_context  # noqa: SLF001


def accumulator_server(context: SparkContext) -> Any:
    """Return the server that receives workers' accumulators, or None if PySpark has none."""
    return getattr(context, "_accumulatorServer", None)


def worker_environment(context: SparkContext) -> dict[str, str]:
    """Return the environment of new Python workers. A caller may change the returned dict."""
    environment: dict[str, str] = context.environment
    return environment


def forget_context(context: Any) -> None:
    """Stop a context whose JVM is gone, and let PySpark start another JVM."""
    context._jsc = None  # noqa: SLF001 - else stop() would call the JVM that is gone
    context.stop()
    forget_gateway()


def forget_gateway() -> None:
    """Let PySpark start another JVM."""
    for owner, name in (
        (SparkContext, "_gateway"),
        (SparkContext, "_jvm"),
        (SparkContext, "_active_spark_context"),
        (SparkSession, "_instantiatedSession"),
        (SparkSession, "_activeSession"),
    ):
        setattr(owner, name, None)


def java_stack(error: BaseException) -> str:
    """Return the Java frames of an error that PySpark took over from Java.

    Empty for other errors.
    """
    return str(getattr(error, "_stackTrace", ""))


def java_cause(error: BaseException) -> BaseException | None:
    """Return the cause of an error that PySpark took over from Java, or None."""
    return getattr(error, "_cause", None)


def physical_plan(query: Any) -> Any:
    """Return the physical plan of the micro-batch that a streaming query runs."""
    return query._jsq.streamingQuery().lastExecution().executedPlan()  # noqa: SLF001


def state_client(handle: Any) -> Any:
    """Return the client that sends a stateful processor's requests.

    The client's ``set_implicit_key`` sets the key of further requests.
    """
    return handle._statefulProcessorApiClient  # noqa: SLF001
