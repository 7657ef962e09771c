"""The JoinBolt: joins tuples of several streams by key, one tuple of each stream."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

from sparkstorm.components.collector import BoltCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.components.stateful import State, StatefulBolt
from sparkstorm.components.wiring import Edge, Wiring
from sparkstorm.config import Config
from sparkstorm.errors import ConfigError, TopologyError
from sparkstorm.streams import DEFAULT_STREAM
from sparkstorm.tuples import Tuple

__all__ = ["JoinBolt"]


@final
@dataclass(frozen=True, slots=True)
class _Input:
    """A joined stream; a result needs its tuple, unless there is a time limit to wait."""

    component: str
    stream: str
    fields: tuple[str, ...]
    wait_secs: float | None = None

    def __str__(self) -> str:
        named = self.stream != DEFAULT_STREAM
        return f"{self.component}/{self.stream}" if named else self.component


class _Pick(NamedTuple):
    """A value of the result: a field of an input, or (None) of the first input with the field."""

    name: str
    source: int | None
    field: str


class JoinBolt(StatefulBolt):
    """Waits for a tuple of each stream with the same key, and emits one result for all.

    The result is anchored to all its tuples, and the bolt acks the tuples with it. Every tuple is
    in one result: if a key comes several times, the oldest tuples of the streams belong together.
    The bolt holds waiting tuples over batches; tuples without a match within
    ``message_timeout_secs`` fail. Group every stream by its key.

    >>> bolt = (
    ...     JoinBolt("orders", "id")
    ...     .join("payments", "order")
    ...     .left_join("vouchers", "order", wait_secs=5)
    ...     .select("id, payments:amount, vouchers:code as voucher")
    ... )
    >>> bolt.outputs
    ['id', 'amount', 'voucher']

    Args:
        source: the first stream, joined by the others: ``component`` or ``component/stream``.
        key: the fields with equal values, in the order of the other streams' own names for them. A
            tuple with None in its key has no match and fails.
    """

    def __init__(self, source: str, key: str | Sequence[str]) -> None:
        self._inputs: list[_Input] = []
        self._numbers: dict[tuple[str, str], int] = {}
        self._picks: list[_Pick] = []
        self._add(source, key, None)

    def join(self, source: str, key: str | Sequence[str]) -> Self:
        """Join a stream; a result needs a tuple of it."""
        return self._add(source, key, None)

    def left_join(self, source: str, key: str | Sequence[str], *, wait_secs: float) -> Self:
        """Join a stream if it has a tuple of the key.

        If no such tuple has come ``wait_secs`` after the first stream's tuple, the result has None
        for the stream's fields. A later tuple of the stream can only match a later tuple of the
        first stream.
        """
        return self._add(source, key, wait_secs)

    def select(self, fields: str) -> Self:
        """Choose the result's fields: ``field``, ``source:field``, or either ``as name``.

        A field without a source is taken from the first joined stream that has the field.
        """
        self._picks = [self._pick(text.strip()) for text in fields.split(",")]
        self.outputs = [pick.name for pick in self._picks]
        return self

    def component_configuration(self) -> Mapping[str, object]:
        """Ask for ticks if results may come without new tuples.

        Raises:
            TopologyError: there is nothing to join, or nothing to emit.
        """
        if len(self._inputs) < 2 or not self._picks:
            raise TopologyError("a JoinBolt needs join or left_join, and select")
        wait = self._longest_wait()
        return {} if wait is None else {"tick_tuple_freq_secs": min(1.0, max(0.05, wait / 10))}

    def faults(self, wiring: Wiring, tasks: int) -> Iterator[str]:
        """Find streams and fields that are not there, and groupings that part what joins."""
        read = {(source, name) for source, streams in wiring.sources.items() for name in streams}
        if set(self._numbers) != read:
            odd = ", ".join("/".join(pair) for pair in sorted(set(self._numbers) ^ read))
            yield f"the joined streams and the subscriptions differ: see {odd}"
            return
        ways = set()
        for one in self._inputs:
            fields = wiring.source_fields[one.component][one.stream]
            for field in one.fields:
                if field not in fields:
                    yield (
                        f"it joins {str(one)!r} by {field!r}, but this stream has the fields "
                        f"{', '.join(fields) or 'none'}"
                    )
            ways.add(_way(one, wiring.sources[one.component][one.stream]))
        if tasks > 1 and (len(ways) > 1 or None in ways):
            yield (
                f"it has {tasks} tasks, and its streams are not grouped alike, so tuples with the "
                f"same key would miss each other. Use fields_grouping for each stream, by its key"
            )

    def prepare(self, config: Config, context: TaskContext, collector: BoltCollector) -> None:
        """Check the times."""
        wait = self._longest_wait()
        limit = config.message_timeout_secs
        if wait is not None and config.enable_message_timeouts and wait >= limit:
            raise ConfigError(
                f"the bolt waits {wait} s for missing tuples, but tuples time out after {limit} s: "
                f"raise message_timeout_secs"
            )

    def init_state(self, state: State) -> None:
        """Take up the held tuples."""
        super().init_state(state)
        self._held = [state.tuples(f"__join/{one}") for one in self._inputs]

    def execute(self, tup: Tuple) -> None:
        """Match a tuple with waiting tuples, or let it wait."""
        if tup.is_tick:
            self.collector.ack(tup)
            return
        number = self._numbers[tup.component, tup.stream]
        key = self._key(number, tup)
        if None in key:
            self.collector.fail(tup, f"its key {key!r} can match nothing")
        elif all(key in held for n, held in enumerate(self._held) if n != number):
            # No older tuple of the same stream waits: it would have found this match before.
            self._emit(
                [held.get(key)[0] if n != number else tup for n, held in enumerate(self._held)]
            )
        else:
            self._held[number].add(key, tup)

    def finish_batch(self) -> None:
        """Emit results whose missing streams had their time."""
        wait = self._longest_wait()
        if wait is None:
            return
        first, *others = self._held
        needed = [n for n, one in enumerate(self._inputs) if n and one.wait_secs is None]
        # Left joins alone may be missing: without a tuple of each needed stream there is no result.
        for tup in first.held_since(self.context.batch_time - wait):
            key = self._key(0, tup)
            if all(key in self._held[n] for n in needed):
                self._emit([tup, *(next(iter(held.get(key)), None) for held in others)])

    def _emit(self, found: Sequence[Tuple | None]) -> None:
        there = [tup for tup in found if tup is not None]
        self.collector.emit([self._value(pick, found) for pick in self._picks], anchors=there)
        for tup in there:
            self.collector.ack(tup)

    def _key(self, number: int, tup: Tuple) -> tuple[Any, ...]:
        return tuple(tup[field] for field in self._inputs[number].fields)

    def _value(self, pick: _Pick, found: Sequence[Tuple | None]) -> Any:
        if pick.source is not None:
            tup = found[pick.source]
            return None if tup is None else tup[pick.field]
        for tup in found:
            if tup is not None and pick.field in tup:
                return tup[pick.field]
        if None in found:  # the field may belong to the missing stream
            return None
        raise KeyError(f"{pick.field!r}: no joined stream has such a field")

    def _add(self, source: str, key: str | Sequence[str], wait_secs: float | None) -> Self:
        component, _, stream = source.partition("/")
        names = key.split(",") if isinstance(key, str) else key
        one = _Input(
            component, stream or DEFAULT_STREAM, tuple(name.strip() for name in names), wait_secs
        )
        if wait_secs is not None and wait_secs <= 0:
            raise TopologyError(f"wait_secs is {wait_secs}: it is above 0")
        if (one.component, one.stream) in self._numbers:
            raise TopologyError(f"{source!r} is joined twice")
        if self._inputs and len(one.fields) != len(self._inputs[0].fields):
            raise TopologyError(
                f"the key of {source!r} has {len(one.fields)} fields, that of "
                f"{str(self._inputs[0])!r} has {len(self._inputs[0].fields)}"
            )
        self._numbers[one.component, one.stream] = len(self._inputs)
        self._inputs.append(one)
        return self

    def _pick(self, text: str) -> _Pick:
        match = re.fullmatch(
            r"(?:(?P<source>[^\s:]+):)?(?P<field>\S+)(?:\s+as\s+(?P<name>\S+))?", text
        )
        if match is None:
            raise TopologyError(
                f"select says {text!r}: write field, source:field, or one of them as name"
            )
        source, field, name = match["source"], match["field"], match["name"] or match["field"]
        numbers = {str(one): number for number, one in enumerate(self._inputs)}
        if source is not None and source not in numbers:
            raise TopologyError(
                f"select says {text!r}, but the joined streams are {', '.join(numbers)}"
            )
        return _Pick(name, None if source is None else numbers[source], field)

    def _longest_wait(self) -> float | None:
        waits = [one.wait_secs for one in self._inputs if one.wait_secs is not None]
        return max(waits, default=None)


def _way(one: _Input, edge: Edge) -> tuple[object, ...] | None:
    """Return what must be alike of all groupings; None if a key may reach several tasks."""
    if edge.grouping == "FIELDS" and set(edge.fields) <= set(one.fields):
        return tuple(one.fields.index(field) for field in edge.fields)
    return (edge.grouping,) if edge.keeps_together(one.fields) else None
