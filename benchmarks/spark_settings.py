"""The Spark settings of every run that uses Spark, the same for sparkstorm and the peers.

The keys were checked against the classes of Spark 4.3.0, and their effect on a running query.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import SparkSession

from sparkstorm.spark.driver.session import write_no_crc_files

PARALLELISM = 2

_STREAMING = "org.apache.spark.sql.execution.streaming"

SPARK_SETTINGS: dict[str, str] = {
    "spark.master": f"local[{PARALLELISM}]",
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": str(PARALLELISM),
    # Costs about 380 ms a batch for a few partitions that need no adapting.
    "spark.sql.adaptive.enabled": "false",
    # Without it ours and the count in the JVM took a tenth less CPU or more, over twenty batches.
    "spark.sql.codegen.wholeStage": "false",
    # TCP costs about 40 ms a Python stage: a small write waits for the delayed ack of another.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Version 2 keeps a task that Spark gave up on from overwriting the state of its successor.
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}

# Spark's own daemon runs a full gc.collect() after every task in each worker that is used again,
# up to 90 ms a stage on two cores. sparkstorm freezes what was loaded before, in its own functions;
# this daemon does so for the peers, and for ours too.
DAEMON_MODULE = "benchmarks.freezing_daemon"

_PROJECT = Path(__file__).resolve().parent.parent


def daemon_settings(module: str | None = None) -> dict[str, str]:
    """Return the setting for Python's worker daemon.

    Without a module's name the freezing daemon is taken if this Python can import it; ``"stock"``
    is Spark's own daemon.
    """
    chosen = module or (DAEMON_MODULE if _can_import(DAEMON_MODULE) else "stock")
    return {} if chosen == "stock" else {"spark.python.daemon.module": chosen}


def _can_import(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@contextmanager
def spark_session(app_name: str, *, daemon_module: str | None = None) -> Iterator[SparkSession]:
    """Open a session with the settings of this file; the session stops at the end of the block."""
    prepare_environment()
    builder = SparkSession.builder.appName(app_name)
    for key, value in (SPARK_SETTINGS | daemon_settings(daemon_module)).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    write_no_crc_files(session)  # as in sessions that sparkstorm makes; the peers gain, too
    try:
        yield session
    finally:
        session.stop()


def prepare_environment() -> None:
    """Set the environment variables that Spark's processes need; call this before the JVM starts.

    The workers must run this Python and find the package ``benchmarks``. The process that plans
    for a Python data source looks at the environment only, not at ``spark.pyspark.python``.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    wanted = [str(_PROJECT), str(_PROJECT / "src")]
    os.environ["PYTHONPATH"] = os.pathsep.join(wanted + [p for p in path if p and p not in wanted])
