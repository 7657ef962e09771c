"""Answers the source: puts Spark's questions to the coordinator."""

import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, TypeVar, final

from sparkstorm.batches.coordinator import Coordinator
from sparkstorm.errors import BatchError, SparkstormError

__all__ = ["PlanServer"]

_LONG_POLL_SECS = 1.0
_LOOK_AGAIN_SECS = 0.05

_Answer = TypeVar("_Answer")


@final
class PlanServer:
    """Answers the questions that Spark puts to :mod:`stream`, on the thread of the query.

    The coordinator works on a thread of its own for each question. Spark interrupts the thread of
    a query that is stopped, and an interrupted thread cannot write to the checkpoint. Besides, the
    stop need not wait for the coordinator, who may be calling code of the user's.

    Attributes:
        fault: the coordinator's error; Spark only hears the error's text.
        was_asked_for_more: whether Spark asked for a new batch; the supervisor sets it back.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._stopping: Future[None] = Future()
        self.fault: SparkstormError | None = None
        self.was_asked_for_more = False

    def stop(self) -> None:
        """Plan no more batches, and end a question that waits. A second call does nothing."""
        if not self._stopping.done():
            self._stopping.set_result(None)

    def latest(self, start: int) -> int:
        """Return the number after the next batch, or ``start`` if none is planned after a while.

        The question shows that every batch before ``start`` is committed.
        """
        self.was_asked_for_more = True
        try:
            return self._ask(lambda: self._latest(start))
        except _StoppedError:
            return start

    def partitions(self, number: int) -> list[tuple[int, bytes]]:
        """Return the pickled loads of each partition with something to read in a batch.

        Raises:
            BatchError: the run is being stopped.
        """
        return self._ask(lambda: self._partitions(number))

    def _ask(self, answer: Callable[[], _Answer]) -> _Answer:
        asked: Future[_Answer] = Future()

        def run() -> None:
            try:
                asked.set_result(answer())
            except BaseException as error:  # noqa: BLE001 - the thread's edge: raised by the asker
                asked.set_exception(error)

        threading.Thread(target=run, name="sparkstorm-plan", daemon=True).start()
        either: list[Future[Any]] = [asked, self._stopping]
        wait(either, return_when=FIRST_COMPLETED)
        if not asked.done():
            raise _StoppedError("the run is being stopped")
        try:
            return asked.result()
        except SparkstormError as error:
            self.fault = error  # Spark carries texts: the supervisor needs the error's type
            raise

    def _latest(self, start: int) -> int:
        """Wait up to a second for a batch, then answer without one.

        An immediate answer would make an idle Spark ask a hundred times a second.
        """
        deadline = time.monotonic() + _LONG_POLL_SECS
        while not self._stopping.done():
            if self._coordinator.next_batch(start):
                return start + 1
            left = deadline - time.monotonic()
            if left <= 0:
                # Spark runs batch 0 of a new checkpoint even without data, so plan an empty one
                return start + (start == 0 and self._coordinator.next_batch(0, even_empty=True))
            # Retries and ticks fall due without an arrival, so look again now and then.
            self._coordinator.arrived.wait(min(left, _LOOK_AGAIN_SECS))
        return start

    def _partitions(self, number: int) -> list[tuple[int, bytes]]:
        loads = sorted(self._coordinator.loads(number).items())
        return [(dest, pickle.dumps(mine, pickle.HIGHEST_PROTOCOL)) for dest, mine in loads]


class _StoppedError(BatchError):
    """The run is stopped before the coordinator has answered."""
