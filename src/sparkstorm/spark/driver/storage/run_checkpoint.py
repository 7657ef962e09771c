"""The checkpoint of a run: taken at the start of the run, given back at its end."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from sparkstorm.checkpoint.engine_log import EngineLog
from sparkstorm.checkpoint.files import CheckpointFiles, LocalFiles
from sparkstorm.checkpoint.holder import Holder
from sparkstorm.checkpoint.lease import Lease
from sparkstorm.checkpoint.scratch import make_folder
from sparkstorm.clock import SystemClock
from sparkstorm.config import Config
from sparkstorm.dead_letters.letter_queue import DeadLetterQueue
from sparkstorm.dead_letters.places import default_folder
from sparkstorm.dead_letters.store import LetterStore
from sparkstorm.planning.plan import Plan
from sparkstorm.spark.driver.storage.checkpoint import open_files, open_spark_files
from sparkstorm.spark.driver.storage.spark_log import read_spark_log
from sparkstorm.texts.logs import logger_of

__all__ = ["RunCheckpoint", "take_checkpoint"]

_logger = logger_of(__name__)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunCheckpoint:
    """A checkpoint that only this run may write to.

    Attributes:
        where: the folder, as people name it.
        files: sparkstorm's part of the folder.
        lease: keeps other drivers out; named after the run.
        lasts: whether the folder outlives the run.
    """

    where: str
    files: CheckpointFiles
    lease: Lease
    lasts: bool

    def engine_log(self, session: SparkSession) -> EngineLog:
        """Return how far Spark's own logs in the folder go.

        Raises:
            CheckpointError: the newest file of a log is damaged.
        """
        return read_spark_log(open_spark_files(self.where, session))

    def dead_letters(self, plan: Plan) -> DeadLetterQueue:
        """Return the run's dead letter dead_letters.

        Letters lie beside the checkpoint. Letters of a temporary checkpoint lie in a lasting
        folder.
        """
        store, options = LetterStore(self.files), f"--checkpoint {self.where}"
        if not self.lasts:
            folder, fsync = plan.config.dead_letter_folder, plan.config.checkpoint_fsync
            files = LocalFiles(Path(folder) if folder else default_folder(), fsync=fsync)
            store = LetterStore(files, plan.name)
            options = f"--topology {plan.name}" + (f" --folder {folder}" if folder else "")
        run = self.lease.run
        return DeadLetterQueue(plan.name, store, SystemClock(), run=run, where=options)


@contextmanager
def take_checkpoint(
    location: str | os.PathLike[str] | None, session: SparkSession, name: str, config: Config
) -> Iterator[RunCheckpoint]:
    """Hold a checkpoint during a ``with`` block.

    Args:
        location: the folder or its URL; None for a temporary folder, removed at the end.
        session: any session; reaches file systems beyond the local disk.
        name: the topology's name.
        config: the settings.

    Raises:
        CheckpointError: another driver holds the checkpoint, or two drivers could write to it at
            once.
    """
    with ExitStack() as stack:
        lasts = location is not None
        if location is None:
            location = make_folder(name)
            stack.callback(shutil.rmtree, location, ignore_errors=True)
        where = os.fspath(location)
        files = open_files(where, session, fsync=config.checkpoint_fsync)
        clock = SystemClock()
        holder = Holder.here(secrets.token_hex(4), clock.wall())
        lease = Lease(files, clock, holder, config.lease_timeout_secs)
        lease.acquire()
        stack.callback(_release, lease)
        yield RunCheckpoint(where=where, files=files, lease=lease, lasts=lasts)


def _release(lease: Lease) -> None:
    try:
        lease.release()
    except (OSError, Py4JError) as error:  # the checkpoint is out of reach, perhaps with the JVM
        _logger.warning("the lease of the checkpoint could not be released: %s", error)
