"""Whether Spark could not start a Python worker, and why."""

import pytest

from sparkstorm.spark.driver.failures.start_failures import StartFailure, start_failure

# --- what Spark 4.3 said while its daemons were killed, less the frames in between ---------------

FRAMES = """
\tat org.apache.spark.api.python.PythonWorkerFactory.createThroughDaemon(\
PythonWorkerFactory.scala:229)
\tat org.apache.spark.api.python.PythonWorkerFactory.create(PythonWorkerFactory.scala:177)
\tat org.apache.spark.SparkEnv.createPythonWorker(SparkEnv.scala:326)
\tat org.apache.spark.api.python.BasePythonRunner.compute(PythonRunner.scala:637)

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.$anonfun$abortStage$3(DAGScheduler.scala:4568)
"""

IN_A_JOB = """An error occurred while calling o1405.count.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 3 in stage 44.0 failed 4 \
times, most recent failure: Lost task 3.3 in stage 44.0 (TID 186) (192.0.2.2 executor driver): """

KILLED_AS_PLANNED = (
    """An error occurred while calling o181.load.
: org.apache.spark.SparkException: EOFException occurred while reading the port number from \
pyspark.daemon's stdout.
\tat org.apache.spark.errors.SparkCoreErrors$.eofExceptionWhileReadPortNumberError(\
SparkCoreErrors.scala:55)
\tat org.apache.spark.api.python.PythonWorkerFactory.startDaemon(PythonWorkerFactory.scala:382)"""
    + FRAMES
)

KILLED = (
    IN_A_JOB
    + """org.apache.spark.SparkException: EOFException occurred while reading the port number from \
sparkstorm.spark.worker.daemon's stdout and terminated with code: 137..
\tat org.apache.spark.api.python.PythonWorkerFactory.startDaemon(PythonWorkerFactory.scala:384)"""
    + FRAMES
)

IDLE_WORKERS_DEAD = (
    IN_A_JOB
    + """java.io.IOException: Stream closed
\tat java.base/java.lang.ProcessBuilder$NullOutputStream.write(ProcessBuilder.java:445)
\tat org.apache.spark.api.python.PythonWorkerFactory.$anonfun$stopWorker$2(\
PythonWorkerFactory.scala:527)
\tat org.apache.spark.api.python.PythonWorkerFactory.stopWorker(PythonWorkerFactory.scala:523)"""
    + FRAMES
)

STUCK = (
    IN_A_JOB
    + """java.lang.NullPointerException
\tat java.base/java.util.Objects.requireNonNull(Objects.java:209)
\tat java.base/sun.nio.fs.UnixFileSystem.getPath(UnixFileSystem.java:263)
\tat java.base/java.nio.file.Path.of(Path.java:147)
\tat java.base/java.net.UnixDomainSocketAddress.of(UnixDomainSocketAddress.java:146)
\tat org.apache.spark.api.python.PythonWorkerFactory.createWorker$1(PythonWorkerFactory.scala:192)
\tat org.apache.spark.api.python.PythonWorkerFactory.liftedTree1$1(PythonWorkerFactory.scala:233)"""
    + FRAMES
)

LATE = """org.apache.spark.SparkException: Python worker failed to connect back.
\tat org.apache.spark.api.python.PythonWorkerFactory.createSimpleWorker(\
PythonWorkerFactory.scala:328)
\tat org.apache.spark.sql.execution.python.streaming.PythonStreamingSourceRunner.init(\
PythonStreamingSourceRunner.scala:109)
Caused by: java.net.SocketTimeoutException: Timed out while waiting for the Python worker to \
connect back
"""

NO_PACKAGE = (
    IN_A_JOB
    + """org.apache.spark.SparkException:
Error from python worker:
  Traceback (most recent call last):
    File "<frozen runpy>", line 198, in _run_module_as_main
  ModuleNotFoundError: No module named 'pandas'
PYTHONPATH was:
  /opt/spark/python
org.apache.spark.SparkException: EOFException occurred while reading the port number from \
sparkstorm.spark.worker.daemon's stdout and terminated with code: 1..
\tat org.apache.spark.api.python.PythonWorkerFactory.startDaemon(PythonWorkerFactory.scala:384)"""
    + FRAMES
)

NO_PYTHON = (
    IN_A_JOB + 'java.io.IOException: Cannot run program "python9": error=2, No such file' + FRAMES
)

NO_MEMORY = (
    IN_A_JOB + 'java.io.IOException: Cannot run program "python3": error=12, Cannot allocate'
) + FRAMES

DEATH_AT_WORK = (
    IN_A_JOB
    + """org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handleEndOfDataSection(\
PythonRunner.scala:851)
Caused by: java.io.EOFException
"""
)

NULL_ELSEWHERE = IN_A_JOB + "java.lang.NullPointerException\n\tat org.apache.spark.Foo.bar(Foo:1)\n"


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        (KILLED_AS_PLANNED, StartFailure.DIED),
        (KILLED, StartFailure.DIED),
        (KILLED.replace("137", "143"), StartFailure.DIED),
        (IDLE_WORKERS_DEAD, StartFailure.DIED),
        (NO_MEMORY, StartFailure.DIED),
        (STUCK, StartFailure.STUCK),
        (LATE, StartFailure.LATE),
        (KILLED.replace("137", "1"), None),
        (NO_PACKAGE, None),
        (NO_PYTHON, None),
        (DEATH_AT_WORK, None),
        (NULL_ELSEWHERE, None),
        ("", None),
    ],
)
def test_why_no_worker_started(text: str, failure: StartFailure | None) -> None:
    """An error of the daemon's own, which comes again, is none of these; nor is a death at work."""
    assert start_failure(RuntimeError(text)) is failure


def test_a_message_that_quotes_spark_is_none() -> None:
    """Whatever a bolt raises comes with Python's traceback."""
    quoted = f"Traceback (most recent call last):\n  bolts.py\nValueError: {STUCK}"
    assert start_failure(RuntimeError(quoted)) is None


def test_the_cause_of_an_error_counts() -> None:
    """Our own error says it in our words; Spark's may have its frames beside its text."""

    class Captured(Exception):
        _stackTrace = LATE

    error = RuntimeError("the batch could not be run")
    error.__cause__ = Captured("terminated with exception: null")
    assert start_failure(error) is StartFailure.LATE
