"""An observer apart from the engine: hears every verdict beside the spouts, and checks promises."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, final

from sparkstorm.components.collector import SpoutCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.components.spout import PartitionedSpout, Positions, ReadItem, Split, Spout
from sparkstorm.config import Config
from sparkstorm.testing.internal.shared import Shared
from sparkstorm.topology.graph import ComponentSpec, Topology
from sparkstorm.verdicts import Failure

__all__ = ["BrokenPromise", "Message", "Verdict", "Witness"]

Message: TypeAlias = tuple[str, Any]
"""A spout's id and a message id."""

Verdict: TypeAlias = Callable[[Message, Failure | None], None]
"""Called for each ack (None) and each failure, when the spout hears it."""


class BrokenPromise(AssertionError):
    """An invariant did not hold."""


@final
class Witness(Shared):
    """Sees every emit and every verdict of every spout task, over all lives of the driver."""

    def __init__(self, on_verdict: Verdict) -> None:
        super().__init__()
        self.on_verdict = on_verdict
        self.commits = 0
        self.slow: Callable[[str], bool] = lambda _: False
        self.acked: Counter[Message] = Counter()
        self.given_up: Counter[Message] = Counter()
        self.failures: Counter[str] = Counter()
        self._open: dict[tuple[str, int, Hashable], list[int]] = {}
        self._planned: set[Message] = set()

    def watch(self, topology: Topology) -> Topology:
        """Return the topology with its spouts under observation."""
        specs = {name: self._watched(spec) for name, spec in topology.components.items()}
        return Topology(specs)

    def driver_died(self) -> None:
        """Forget the open messages of hosted spouts: the spouts died with the driver."""
        self._open.clear()

    @property
    def open(self) -> int:
        """How many messages of hosted spouts have no verdict yet, in this driver's life."""
        return sum(len(since) for since in self._open.values())

    def owed(self) -> set[Message]:
        """Return the planned messages of partitioned spouts that have not ended, over all lives."""
        return self._planned - set(self.acked) - set(self.given_up)

    def emitted(self, component: str, task: int, msg_id: Hashable) -> None:
        """Note that a hosted spout emitted a message."""
        self._open.setdefault((component, task, msg_id), []).append(self.commits)

    def planned(self, messages: Iterable[Message]) -> None:
        """Note that a partitioned spout gave out messages."""
        self._planned.update(messages)

    def hosted_verdict(
        self, component: str, task: int, msg_id: Hashable, failure: Failure | None
    ) -> None:
        """Check and note a verdict that a hosted spout task heard.

        Raises:
            BrokenPromise: the message is not pending, or no commit came between its emit and its
                ack.
        """
        since = self._open.get((component, task, msg_id))
        what = f"message {msg_id!r} of {component!r} (task {task})"
        if not since:
            raise BrokenPromise(f"{what} has a verdict, but it is not pending there: {failure}")
        if failure is None and since[0] >= self.commits:
            raise BrokenPromise(f"{what} was acked, and nothing was committed since its emit")
        since.pop(0)
        if not since:
            del self._open[component, task, msg_id]
        self.note((component, msg_id), failure)

    def note(self, message: Message, failure: Failure | None) -> None:
        """Note that a message was acked, or that an attempt at it failed."""
        if failure is None:
            self.acked[message] += 1
        else:
            self.failures[failure.reason.value] += 1
        self.on_verdict(message, failure)

    def gave_up(self, message: Message) -> None:
        """Note that the engine will not try a message again."""
        self.given_up[message] += 1

    def _watched(self, spec: ComponentSpec) -> ComponentSpec:
        match spec.component:
            case Spout() as spout:
                return replace(spec, component=_WatchedSpout(spout, self))
            case PartitionedSpout() as spout:
                return replace(spec, component=_WatchedPartitionedSpout(spout, self))
        return spec


def _check_attempt(message: Message, failure: Failure, limit: int | None) -> None:
    if limit is not None and failure.attempt > limit + 1:
        raise BrokenPromise(
            f"message {message} failed in attempt {failure.attempt}, with max_retries={limit}"
        )


@final
class _WatchedCollector:
    """Stands between a hosted spout and the engine."""

    def __init__(self, inner: SpoutCollector, witness: Witness, component: str, task: int) -> None:
        self._inner = inner
        self._witness = witness
        self._component = component
        self._task = task

    def emit(
        self, values: Sequence[Any], *, msg_id: Hashable = None, stream: str = "default"
    ) -> None:
        self._note(msg_id)
        self._inner.emit(values, msg_id=msg_id, stream=stream)

    def emit_direct(
        self, task: int, values: Sequence[Any], *, msg_id: Hashable = None, stream: str = "default"
    ) -> None:
        self._note(msg_id)
        self._inner.emit_direct(task, values, msg_id=msg_id, stream=stream)

    def report_error(self, error: BaseException | str) -> None:
        self._inner.report_error(error)

    def give_up(
        self, msg_id: Hashable, failure: Failure, *, source: Mapping[str, Any] | None = None
    ) -> None:
        self._witness.gave_up((self._component, msg_id))
        self._inner.give_up(msg_id, failure, source=source)

    def _note(self, msg_id: Hashable) -> None:
        if msg_id is not None:
            self._witness.emitted(self._component, self._task, msg_id)


@final
class _WatchedSpout(Spout):
    """A hosted spout under observation, and slow now and then."""

    def __init__(self, inner: Spout, witness: Witness) -> None:
        self.outputs = inner.outputs
        self._inner = inner
        self._witness = witness

    def open(self, config: Config, context: TaskContext, collector: SpoutCollector) -> None:
        self._component, self._task = context.component, context.task
        self._limit = config.max_retries
        self._collector = _WatchedCollector(collector, self._witness, self._component, self._task)
        self._inner.open(config, context, self._collector)

    def close(self) -> None:
        self._inner.close()

    def activate(self) -> None:
        self._inner.activate()

    def deactivate(self) -> None:
        self._inner.deactivate()

    def next_tuple(self) -> None:
        if not self._witness.slow(self._component):
            self._inner.next_tuple()

    def ack(self, msg_id: Any) -> None:
        self._witness.hosted_verdict(self._component, self._task, msg_id, None)
        self._inner.ack(msg_id)

    def fail(self, msg_id: Any, failure: Failure) -> None:
        self._witness.hosted_verdict(self._component, self._task, msg_id, failure)
        _check_attempt((self._component, msg_id), failure, self._limit)
        if type(self._inner).fail is Spout.fail:
            self._collector.give_up(msg_id, failure)
        else:
            self._inner.fail(msg_id, failure)

    def exhausted(self) -> bool:
        return self._inner.exhausted()


@final
class _WatchedPartitionedSpout(PartitionedSpout):
    """A partitioned spout whose splits and verdicts are observed."""

    def __init__(self, inner: PartitionedSpout, witness: Witness) -> None:
        self.outputs = inner.outputs
        self.replayable = inner.replayable
        self._inner = inner
        self._witness = witness

    def open(self, config: Config, context: TaskContext) -> None:
        self._component = context.component
        self._limit = config.max_retries
        self._inner.open(config, context)

    def close(self) -> None:
        self._inner.close()

    def plan(self, limit: int) -> list[Split]:
        splits = self._inner.plan(limit)
        for split in splits:
            self._witness.planned(self._messages(split, [(0, split.count)]))
        return splits

    def read(self, split: Split) -> Iterable[ReadItem]:
        return self._inner.read(split)

    def msg_id(self, split: Split, position: int) -> Hashable:
        return self._inner.msg_id(split, position)

    def ack(self, split: Split, positions: Positions) -> None:
        for message in self._messages(split, positions):
            self._witness.note(message, None)
        self._inner.ack(split, positions)

    def fail(self, split: Split, positions: Positions, failure: Failure) -> None:
        for message in self._messages(split, positions):
            self._witness.note(message, failure)
            _check_attempt(message, failure, self._limit)
            last = self._limit is not None and failure.attempt > self._limit
            if failure.final or (last and failure.counted):
                self._witness.gave_up(message)
        self._inner.fail(split, positions, failure)

    def snapshot(self) -> Any:
        return self._inner.snapshot()

    def restore(self, snapshot: Any) -> None:
        self._inner.restore(snapshot)

    def exhausted(self) -> bool:
        return self._inner.exhausted()

    def _messages(self, split: Split, positions: Positions) -> list[Message]:
        return [
            (self._component, self._inner.msg_id(split, position))
            for start, stop in positions
            for position in range(start, stop)
        ]
