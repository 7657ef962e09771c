"""A task whose bolt raises: what is taken back with its state, and what stands."""

from typing import Any, ClassVar

import pytest

from sparkstorm import (
    BasicBolt,
    BasicCollector,
    Bolt,
    BoltCollector,
    Failure,
    Spout,
    StatefulBolt,
    TopologyBuilder,
    Tuple,
)
from sparkstorm.components.bolt import AnyBolt
from sparkstorm.testing import LocalRunner, ManualClock


class Numbers(Spout):
    """Emits 0, 1 and 2, and remembers what became of them."""

    outputs = "n long"

    def open(self, config: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.left = [0, 1, 2]
        self.acked: list[int] = []
        self.failed: list[int] = []
        self.told: dict[int, str] = {}

    def next_tuple(self) -> None:
        if self.left:
            number = self.left.pop(0)
            self.collector.emit([number], msg_id=number)

    def ack(self, msg_id: Any) -> None:
        self.acked.append(msg_id)

    def fail(self, msg_id: Any, failure: Failure) -> None:
        self.failed.append(msg_id)
        self.told[msg_id] = failure.message


class _Flushing:
    """Adds what it holds to a sum and acks it, in one go; does not like 2."""

    transient: ClassVar[tuple[str, ...]] = ("held",)
    collector: BoltCollector

    def prepare(self, *_: object) -> None:
        self.held: list[Tuple] = []

    def execute(self, tup: Tuple) -> None:
        self.held.append(tup)
        if len(self.held) == 3:
            self.flush()

    def flush(self) -> None:
        """Work off what is held."""
        for tup in self.held:
            if tup["n"] == 2:
                raise ValueError("not two")
            self.add(tup["n"])
            self.collector.ack(tup)

    def add(self, number: int) -> None:
        """Add to the sum."""


class Plain(_Flushing, Bolt):
    """Keeps no state."""


class Stateful(_Flushing, StatefulBolt):
    """Keeps the sum as state, and flushes when it has three."""

    def add(self, number: int) -> None:
        self.state.put("sum", self.state.get("sum", 0) + number + 1)


class AtTheEnd(Stateful):
    """Flushes when the batch ends."""

    def execute(self, tup: Tuple) -> None:
        self.held.append(tup)

    def finish_batch(self) -> None:
        self.flush()


def run(
    bolt: AnyBolt, *, spout: Numbers | None = None, reader: AnyBolt | None = None
) -> tuple[Numbers, dict[str, int]]:
    """Run the three numbers through the bolt; return the spout and the bolt's state."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout or Numbers())
    builder.set_bolt("bolt", bolt).global_grouping("numbers")
    if reader is not None:
        builder.set_bolt("reader", reader).global_grouping("bolt")
    with LocalRunner(builder.create_topology(), clock=ManualClock()) as runner:
        runner.run_until_idle()
        [hosted] = runner.coordinator.hosted.values()
        assert isinstance(hosted.spout, Numbers)
        return hosted.spout, runner.state("bolt")


@pytest.mark.parametrize("bolt", [Stateful(), AtTheEnd()], ids=["execute", "finish_batch"])
def test_what_was_acked_in_a_call_that_raised_fails_with_its_state(bolt: AnyBolt) -> None:
    """The state that it put is taken back, so it must come again; it once was acked, and lost."""
    spout, state = run(bolt)
    assert (spout.acked, sorted(spout.failed), state) == ([], [0, 1, 2], {})


def test_without_state_what_was_acked_stays_acked() -> None:
    """As in Storm: nothing of it was taken back."""
    spout, _ = run(Plain())
    assert (spout.acked, spout.failed) == ([0, 1], [2])


class Wrong(BasicBolt):
    """Emits text where a number is declared."""

    outputs = "n long"

    def execute(self, tup: Tuple, collector: BasicCollector) -> None:
        collector.emit([f"no {tup['n']}"])


def test_each_tuple_is_told_of_what_it_emitted_itself() -> None:
    """Not of what the first of them did."""
    spout, _ = run(Wrong(), reader=Plain())
    assert sorted(spout.told) == [0, 1, 2]
    for number, text in spout.told.items():
        assert f"declared int64, but got 'no {number}' (str)" in text


class WrongNumbers(Numbers):
    """Emits text itself."""

    def next_tuple(self) -> None:
        if self.left:
            number = self.left.pop(0)
            self.collector.emit([f"no {number}"], msg_id=number)


def test_each_message_of_a_spout_is_told_of_its_own_value() -> None:
    """It was never sent, and will not be."""
    spout, _ = run(Plain(), spout=WrongNumbers())
    assert sorted(spout.told) == [0, 1, 2]
    for number, text in spout.told.items():
        assert f"declared int64, but got 'no {number}' (str)" in text
