"""Plays a queue spout without a topology: a test emits, acks and fails by hand."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self, final

import cloudpickle

from sparkstorm.components.context import TaskContext
from sparkstorm.config import Config
from sparkstorm.queues.spout import QueueSpout
from sparkstorm.testing.waiting import PATIENCE_SECS, wait_until
from sparkstorm.texts.user_errors import reason_of
from sparkstorm.verdicts import Failure, Reason

__all__ = ["SpoutPlay"]


@final
class SpoutPlay:
    """An open copy of a spout, and its messages; gives back and closes at the end of ``with``.

    Args:
        spout: the spout.
        task_index: which task of two it plays.
        settings: settings of the topology; retries are at once unless set.

    Attributes:
        under_way: the values of each message that is emitted and has not ended.
        emits: how often each message was emitted.
        given_up: the dead letters: message id, failure and source.
        errors: what the spout has reported.
    """

    def __init__(self, spout: QueueSpout, *, task_index: int = 0, **settings: Any) -> None:
        self.under_way: dict[Hashable, tuple[Any, ...]] = {}
        self.emits: dict[Hashable, int] = {}
        self.given_up: list[tuple[Hashable, Failure, Mapping[str, Any] | None]] = []
        self.errors: list[str] = []
        self.spout: QueueSpout = cloudpickle.loads(cloudpickle.dumps(spout))
        self._config = Config(**{"retry_backoff_secs": 0.0, **settings})
        self._context = TaskContext(
            topology="play",
            component="queue",
            task=1 + task_index,
            tasks={"queue": range(1, 3)},
            config=self._config,
        )

    def __enter__(self) -> Self:
        self.spout.collector = self
        self.spout.open(self._config, self._context, self)
        return self

    def __exit__(self, *_: object) -> None:
        self.spout.close()

    # --- the test's side -------------------------------------------------------------------------

    def pump(self, times: int = 1) -> None:
        """Ask the spout for messages."""
        for _ in range(times):
            self.spout.next_tuple()

    def take(self, count: int, *, secs: float = PATIENCE_SECS) -> list[Hashable]:
        """Ask until ``count`` messages are under way; return all that are.

        Raises:
            TimeoutError: there were not so many in time.
        """
        wait_until(lambda: len(self.under_way) >= count, secs=secs, check=self.pump)
        return list(self.under_way)

    def ack(self, *msg_ids: Hashable) -> None:
        """Tell the spout that messages are processed."""
        for msg_id in msg_ids:
            del self.under_way[msg_id]
            self.spout.ack(msg_id)

    def fail(self, msg_id: Hashable, *, is_final: bool = False) -> None:
        """Tell the spout that a message failed, as often as it was emitted."""
        del self.under_way[msg_id]
        failure = Failure(reason=Reason.FAILED, attempt=self.emits[msg_id], final=is_final)
        self.spout.fail(msg_id, failure)

    def bodies(self) -> list[Any]:
        """Return the first values of the messages under way, in the order of their emits."""
        return [values[0] for values in self.under_way.values()]

    # --- the collector ---------------------------------------------------------------------------

    def emit(
        self, values: Sequence[Any], *, msg_id: Hashable = None, stream: str = "default"
    ) -> None:
        """Note a message; a second copy of a message under way is an error."""
        assert msg_id not in self.under_way, f"a second copy of {msg_id!r}"  # noqa: S101
        self.under_way[msg_id] = tuple(values)
        self.emits[msg_id] = self.emits.get(msg_id, 0) + 1

    def emit_direct(
        self, task: int, values: Sequence[Any], *, msg_id: Hashable = None, stream: str = "default"
    ) -> None:
        """Note a message."""
        self.emit(values, msg_id=msg_id, stream=stream)

    def report_error(self, error: BaseException | str) -> None:
        """Note a report."""
        self.errors.append(reason_of(error))

    def give_up(
        self, msg_id: Hashable, failure: Failure, *, source: Mapping[str, Any] | None = None
    ) -> None:
        """Note a dead letter."""
        self.given_up.append((msg_id, failure, source))
