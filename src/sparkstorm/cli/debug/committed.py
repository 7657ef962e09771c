"""The committed state of a checkpoint, read when a task first needs it: Spark takes seconds."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

from sparkstorm.checkpoint.manifest import Manifest
from sparkstorm.checkpoint.spark_messages import SparkMessages
from sparkstorm.cli.terminal import say
from sparkstorm.local.one_message import OpenStore
from sparkstorm.state.stores import MemoryStore

__all__ = ["committed_state"]


@contextmanager
def committed_state(
    checkpoint: str | None, manifest: Manifest | None, *, verbose: bool
) -> Iterator[OpenStore | None]:
    """Give the committed state of tasks, or None without a checkpoint.

    Args:
        checkpoint: the checkpoint folder.
        manifest: the checkpoint's manifest.
        verbose: whether to show Spark's messages.
    """
    if checkpoint is None or manifest is None:
        yield None
        return
    committed = _CommittedState(checkpoint, manifest, verbose=verbose)
    with committed.opened():
        yield committed.store


@final
class _CommittedState:
    """The state of tasks as of the last committed batch.

    Args:
        checkpoint: the checkpoint folder.
        manifest: the checkpoint's manifest.
        verbose: whether to show Spark's messages.
    """

    def __init__(self, checkpoint: str, manifest: Manifest, *, verbose: bool) -> None:
        self._checkpoint = checkpoint
        self._manifest = manifest
        self._messages = SparkMessages(shown=verbose)
        self._session: Any = None

    def store(self, task: str) -> MemoryStore:
        """Return the state of a task, ``component/index``; empty if the checkpoint has none."""
        component, _, index = task.rpartition("/")
        kept = self._manifest.state.get(component)
        if kept is None or int(index) >= kept.tasks:
            return MemoryStore()
        from sparkstorm.spark.driver.storage.kept_state import StateReader

        say(f"reading the state of {task} as of the last commit", err=True)
        reader = StateReader(self._started(), self._checkpoint, self._manifest.stages)
        return reader.task(component, int(index), has_entries=kept.kind.endswith("rocksdb"))

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Stop Spark at the end of the block, if it was started."""
        with self._messages:
            try:
                yield
            finally:
                if self._session is not None:
                    self._session.stop()

    def _started(self) -> Any:
        from sparkstorm.spark.driver.session import make_session

        if self._session is None:
            with self._messages.opened() as output:
                self._session = make_session("sparkstorm-debug", "local[2]", output=output)
        return self._session
