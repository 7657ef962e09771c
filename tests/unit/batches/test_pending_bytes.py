"""How much a hosted spout may have pending, in bytes, from its first message on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import sparkstorm as ss
from sparkstorm.components.context import TaskContext
from sparkstorm.sources.hosted.intake import Intake, LoadKey
from sparkstorm.sources.message_bytes import MeanBytes, bytes_of
from sparkstorm.testing import LocalRunner, ManualClock

LIMIT = 1_000_000


@dataclass(frozen=True)
class Document:
    """An object whose size shows only when it is encoded."""

    text: str


class Endless(ss.Spout):
    """Always has another message."""

    outputs = "value"

    def __init__(self, make: Callable[[int], Any]) -> None:
        self.make = make

    def open(self, config: ss.Config, context: TaskContext, collector: ss.SpoutCollector) -> None:
        self.collector, self.emitted = collector, 0

    def next_tuple(self) -> None:
        self.emitted += 1
        self.collector.emit([self.make(self.emitted)], msg_id=self.emitted)


class Sink(ss.BasicBolt):
    """Reads them."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Do nothing."""


def pending_after(batches: int, *makes: Callable[[int], Any], **config: Any) -> list[int]:
    """How many messages are pending when the spouts were asked, before each batch."""
    builder = ss.TopologyBuilder()
    sink = builder.set_bolt("sink", Sink())
    for n, make in enumerate(makes):
        builder.set_spout(f"spout {n}", Endless(make))
        sink.shuffle_grouping(f"spout {n}")
    limits = ss.Config(max_pending_bytes=LIMIT, **config)
    seen = []
    with LocalRunner(builder.create_topology(), config=limits, clock=ManualClock()) as runner:
        for _ in range(batches):
            runner.ask_spouts()
            seen.append(runner.statistics().pending)
            runner.step()
    return seen


@pytest.mark.parametrize(
    "make",
    [
        lambda n: "x" * 20_000,
        lambda n: b"x" * 20_000,
        lambda n: {"id": n, "lines": ["x" * 100] * 200},
        lambda n: b"x" * (n % 2 * 40_000),
    ],
    ids=["text", "bytes", "dict", "in turns"],
)
def test_large_messages_are_bounded_from_the_start(make: Callable[[int], Any]) -> None:
    """It once took batches to learn their size: 200 MB came in where 10 were allowed."""
    seen = pending_after(6, make)
    assert max(seen) * 20_000 < 1.5 * LIMIT
    assert min(seen) * 20_000 > 0.5 * LIMIT


def test_objects_are_known_once_they_are_encoded() -> None:
    """What comes later is not allowed more because its size cannot be seen."""
    seen = pending_after(40, lambda n: Document("x" * 20_000), batch_max_messages=50)
    assert seen[0] == 100, "two batches, as nothing is known"
    assert max(seen[2:]) * 20_000 < 1.5 * LIMIT


def test_each_spout_has_its_own_size() -> None:
    """Large messages of one do not keep out the small ones of another."""
    seen = pending_after(8, lambda n: b"x" * 20_000, lambda n: n)
    assert min(seen) > 1_000


def test_messages_that_grow_are_noticed() -> None:
    """Long after the first ones, which were small."""
    seen = pending_after(12, lambda n: b"x" * (1 if n < 5_000 else 20_000), batch_max_messages=1000)
    assert seen[0] == 2_000
    assert seen[-1] * 20_000 < 1.5 * LIMIT


def test_a_few_messages_are_measured() -> None:
    """The first ones, then one in thirteen: it is done for each message that is emitted."""
    intake, key = Intake(), LoadKey("default", tracked=True, attempt=1)
    for number in range(16 + 13):
        assert (intake.message_bytes.value > 0) == (number > 0)
        intake.add(key, ("x" * 8 if number < 16 else "x" * 1_000_000,), number, None)
    assert intake.message_bytes.value == pytest.approx(1_000_000 / 16, rel=0.01)


def test_the_last_messages_decide() -> None:
    """A load of many says it all."""
    mean = MeanBytes()
    assert (mean.value, mean.settled) == (0, False)
    mean.note(10)
    mean.note(20)
    assert mean.value == 15
    mean.note(500, messages=100)
    assert (mean.value, mean.settled) == (500, True)
    mean.note(0)
    assert mean.value == 500 * 15 / 16


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("storm", 5),
        (bytearray(7), 7),
        (np.zeros(10), 80),
        (7, 8),
        (None, 8),
        ([], 8),
        (["ab"] * 1_000, 2_000),
        ({"key": "x" * 97}, 100),
        ({"ab", "cd"}, 4),
        ([[[[["x" * 100]]]]], 8),
        (Document("x" * 100), 8),
    ],
)
def test_sizes_are_estimated(value: Any, size: int) -> None:
    """Cheaply: many items are not all looked at, nor what lies deep."""
    assert bytes_of(value) == size
