"""Make a Spark session, or check a given session. Each setting has a reason."""

import os
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import IllegalArgumentException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from sparkstorm.errors import ConfigError, EnvironmentFault
from sparkstorm.java import find_java, is_hotspot
from sparkstorm.spark.driver.class_archive import ClassArchive
from sparkstorm.spark.internals import (
    LOCAL_FILE_MANAGER,
    ROCKSDB_PROVIDER,
    active_context,
    forget_gateway,
    gateway_of,
    hadoop_configuration,
)

__all__ = [
    "CORE_SETTINGS",
    "SQL_SETTINGS",
    "check_given",
    "is_local",
    "java_options",
    "kill_with_group",
    "make_session",
    "query_session",
    "running_session",
    "session_apart",
    "spark_parallelism",
    "write_no_crc_files",
]

CORE_SETTINGS: dict[str, tuple[str, str]] = {
    "spark.python.unix.domain.socket.enabled": (
        "true",
        "each Python step otherwise waits about 40 ms for TCP's delayed acks",
    ),
    "spark.python.worker.reuse": (
        "true",
        "bolts and state images live in the workers between batches",
    ),
    "spark.broadcast.UDFCompressionThreshold": (
        "2147483647",
        "a topology of more than this many bytes is broadcast, which stateful stages cannot read",
    ),
}
"""Settings of the Spark context, with the reason. They are fixed at the start."""

SQL_SETTINGS: dict[str, str] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB_PROVIDER,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
}
"""Settings of the query's own session.

``wholeStage`` is off: generated Java pays where there are many rows, but packets are few. Word
count takes a tenth less CPU without generated code.

``simplifiedTraceback`` is an environment variable of the workers of stages without state. Spark
gives each environment workers of its own, with a daemon to fork them: a start took another second,
and an executor had two Python processes for each core. What a bolt raises does not reach Spark.
"""

_DAEMON = "sparkstorm.spark.worker.daemon"


def is_local(master: str) -> bool:
    """Whether tasks run in the driver's own JVM, without executors.

    >>> is_local("local"), is_local("local[*]"), is_local("local-cluster[2,1,1024]")
    (True, True, False)
    """
    return master == "local" or master.startswith("local[")


def make_session(
    name: str,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    *,
    output: IO[bytes] | None = None,
) -> SparkSession:
    """Start Spark with sparkstorm's settings.

    Args:
        name: the application's name.
        master: where Spark runs.
        conf: more settings of Spark, which have the last word.
        output: gets the messages of Spark's JVM and its processes; None for stdout and
            stderr.

    Raises:
        EnvironmentFault: Java is missing or too old, or its temporary files have too long a path.
    """
    java = find_java()
    # Spark would start workers with the first python3 on the PATH, which may lack our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **{key: value for key, (value, _) in CORE_SETTINGS.items()},
        # Before the user's own extraJavaOptions, which so have the last word.
        "spark.driver.defaultJavaOptions": " ".join(java_options(java)),
        **dict(conf or {}),
    }
    if is_local(master):  # a remote executor needs its daemon before it has our package
        settings.setdefault("spark.python.daemon.module", _DAEMON)
    made = SparkConf().setAppName(name).setMaster(with_retries(master)).setAll([*settings.items()])
    session = _started(made, output)
    session.sparkContext.setLogLevel("ERROR")
    if is_local(master):
        write_no_crc_files(session)
    return session


def java_options(java: str) -> list[str]:
    """Return the options for a quick start of the driver's Java.

    A start is busy with Java's compilers and class loader. The slow compiler (C2) begins ten times
    later than by default: a long run still gets all of it, and a short run does not wait for it.
    By default the garbage collector also looks for unused classes when they take 21 MB, and again
    and again while Spark loads ten times as many.
    """
    if not is_hotspot(java):
        return []
    archive = ClassArchive.find(java)
    return [
        "-XX:+IgnoreUnrecognizedVMOptions",
        "-XX:MetaspaceSize=256m",
        "-XX:Tier4InvocationThreshold=50000",
        "-XX:Tier4MinInvocationThreshold=6000",
        "-XX:Tier4CompileThreshold=150000",
        "-XX:Tier4BackEdgeThreshold=400000",
        *(archive.options() if archive is not None else []),
    ]


def _started(conf: SparkConf, output: IO[bytes] | None) -> SparkSession:
    """Start the JVM, in a session of its own: a signal to our process group is ours alone."""
    streams = {"start_new_session": True, "stdout": output, "stderr": output}
    return _launched(conf, streams)


def _launched(conf: SparkConf, streams: Mapping[str, Any]) -> SparkSession:
    others = _children()
    try:
        gateway = launch_gateway(conf, dict(streams))  # type: ignore[no-untyped-call]
        context = SparkContext(conf=conf, gateway=gateway)
        return SparkSession(context)
    except KeyboardInterrupt:  # half a start is of no use to anybody
        for pid in _children() - others:
            kill_with_group(pid)
        forget_gateway()
        raise
    except OSError as error:
        if "AF_UNIX" not in str(error):
            raise
        raise EnvironmentFault(
            "Spark makes Unix sockets among Java's temporary files, and their path is too long "
            f"for one ({error}): set spark.python.unix.domain.socket.dir, or Java's "
            "java.io.tmpdir, to a folder with a shorter path"
        ) from error


def kill_with_group(pid: int) -> None:
    """Kill a process, and all others of the group that it leads, if it leads one.

    A process that has just been forked is not yet the leader of the group that it will make.
    """
    for kill in (os.kill, os.killpg):
        with suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)


def _children() -> set[int]:
    """Return the child processes of this process, where the system tells."""
    threads = Path("/proc/self/task")
    if not threads.exists():
        return set()
    found = (thread / "children" for thread in threads.iterdir())
    return {int(pid) for path in found if path.exists() for pid in path.read_text().split()}


def write_no_crc_files(session: SparkSession) -> None:
    """Let this JVM write local files without Hadoop's ``.crc`` file beside each.

    Without Hadoop's native library each file starts a ``chmod`` process, and so does each ``.crc``
    file: a batch with state started a dozen processes and waited for most of them. Spark 4.3 keeps
    checksums of the state itself. The setting holds for all local files of the JVM, so sparkstorm
    never makes it on a user's session.
    """
    hadoop = gateway_of(session.sparkContext).jvm.org.apache.hadoop.fs
    configuration = hadoop_configuration(session.sparkContext)
    hadoop.FileSystem.getLocal(configuration).setWriteChecksum(False)


def running_session() -> SparkSession | None:
    """Return the session of this process, or None if Spark does not run here.

    The caller must not stop the session: somebody else started it.
    """
    return None if active_context() is None else SparkSession.builder.getOrCreate()


def check_given(given: SparkSession) -> None:
    """Check that a topology can run on a session that the user made.

    Raises:
        ConfigError: a Spark Connect session was given.
        EnvironmentFault: the workers run another Python, and a package is missing there.
    """
    if not hasattr(given, "sparkContext") or type(given).__module__.startswith(
        "pyspark.sql.connect"
    ):
        raise ConfigError(
            "a Spark Connect session was given: the coordinator must run in the driver itself "
            "(foreachBatch and the spouts do). Start a classic session, without remote()"
        )
    theirs = given.sparkContext.pythonExec
    if shutil.which(theirs) != sys.executable:
        _check_python(theirs, shipped=not is_local(str(given.sparkContext.master)))


def query_session(given: SparkSession, partitions: int, checkpoint: str) -> SparkSession:
    """Return a new session for the query, on the given session's context.

    Raises:
        ConfigError: Spark refuses the value of a setting.
    """
    missing = [
        f"{key}={value} ({why})"
        for key, (value, why) in CORE_SETTINGS.items()
        if given.sparkContext.getConf().get(key, "") != value
    ]
    if missing:
        warnings.warn(
            "the given Spark session works, but better with these settings, which are fixed when "
            "it starts: " + "; ".join(missing),
            stacklevel=3,
        )
    session = session_apart(given)
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))
    if "://" not in checkpoint or checkpoint.startswith("file:"):
        # Spark's default renames by a process for each file, where Hadoop's native code is missing.
        session.conf.set("spark.sql.streaming.checkpointFileManagerClass", LOCAL_FILE_MANAGER)
    return session


def session_apart(given: SparkSession) -> SparkSession:
    """Return a new session with our settings, which so are not those of the user's own queries.

    Raises:
        ConfigError: Spark refuses the value of a setting.
    """
    session = given.newSession()
    try:  # the first look at any setting is when Spark reads all of them
        settings = session.conf
    except IllegalArgumentException as error:
        first = str(error).partition("\n")[0]  # Java's stack follows
        raise ConfigError(f"Spark refuses a setting: {first}") from error
    for key, value in SQL_SETTINGS.items():
        settings.set(key, value)
    return session


def with_retries(master: str) -> str:
    """Let local mode retry a task whose worker died, as clusters do.

    >>> with_retries("local[2]"), with_retries("local"), with_retries("spark://host:7077")
    ('local[2,4]', 'local[1,4]', 'spark://host:7077')
    """
    if master == "local":
        return "local[1,4]"
    if is_local(master) and "," not in master:
        return f"{master[:-1]},4]"
    return master


def _check_python(theirs: str, *, shipped: bool) -> None:
    needed = ["cloudpickle", "numpy", "pandas", "pyarrow", "pydantic"]
    if not shipped:  # ship() sends the package to a cluster's executors only
        needed.append("sparkstorm")
    command = [theirs, "-c", f"import {', '.join(needed)}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise EnvironmentFault(
            f"the given Spark session runs its Python workers with {theirs}, which is not this "
            f"Python and lacks a package ({done.stderr.strip().splitlines()[-1]}): set "
            f"PYSPARK_PYTHON={sys.executable} before the session is made"
        )


def spark_parallelism(session: Any) -> int:
    """Return how many tasks the session runs at once."""
    return int(session.sparkContext.defaultParallelism)
