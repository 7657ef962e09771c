"""Answers the reader process: puts Spark's questions to the coordinator."""

import pickle
import time
from typing import Any, final

from sparkstorm.batches.coordinator import Coordinator
from sparkstorm.errors import InternalError, SparkstormError
from sparkstorm.spark.link import Answer

__all__ = ["PlanServer"]

_LONG_POLL_SECS = 1.0
_LOOK_AGAIN_SECS = 0.05


@final
class PlanServer:
    """Answers the questions of :mod:`link`, on the link's threads.

    Attributes:
        stopping: when set, no more batches are planned.
        fault: the coordinator's error; the reader process only hears the error's text.
        was_asked_for_more: whether Spark asked for a new batch; the supervisor sets it back.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self.stopping = False
        self.fault: SparkstormError | None = None
        self.was_asked_for_more = False

    def handle(self, question: dict[str, Any]) -> Answer:
        """Answer one question."""
        try:
            return self._answer(question)
        except SparkstormError as error:
            self.fault = error  # the link carries texts: the supervisor needs the error's type
            raise

    def _answer(self, question: dict[str, Any]) -> Answer:
        match question["ask"]:
            case "latest":
                return {"end": self._latest(question["start"])}, ()
            case "partitions":
                return self._partitions(question["start"])
            case other:
                raise InternalError(f"the reader asked {other!r}")

    def _latest(self, start: int) -> int:
        """Wait up to a second for a batch, then answer without one.

        An immediate answer would make an idle Spark ask a hundred times a second.
        """
        self.was_asked_for_more = True
        deadline = time.monotonic() + _LONG_POLL_SECS
        while not self.stopping:
            if self._coordinator.next_batch(start):
                return start + 1
            left = deadline - time.monotonic()
            if left <= 0:
                # Spark runs batch 0 of a new checkpoint even without data, so plan an empty one
                return start + (start == 0 and self._coordinator.next_batch(0, even_empty=True))
            # Retries and ticks fall due without an arrival, so look again now and then.
            self._coordinator.arrived.wait(min(left, _LOOK_AGAIN_SECS))
        return start

    def _partitions(self, number: int) -> Answer:
        loads = sorted(self._coordinator.loads(number).items())
        parts = [pickle.dumps(mine, pickle.HIGHEST_PROTOCOL) for _, mine in loads]
        return {"partitions": [partition for partition, _ in loads]}, parts
