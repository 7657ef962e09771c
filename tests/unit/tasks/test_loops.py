"""The loops around ``execute``, compiled where they can be, and what they hand on."""

import os
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from sparkstorm import BasicBolt, BasicCollector, Bolt, TopologyBuilder, Tuple
from sparkstorm._version import is_compiled
from sparkstorm.components.bolt import AnyBolt
from sparkstorm.errors import EmitError
from sparkstorm.testing import FixedSpout, LocalRunner


def test_what_runs_for_each_tuple_is_compiled(absent: Callable[[str], NoReturn]) -> None:
    """`make setup` does it; but not for the tests that are run a second time, as plain Python."""
    if os.environ.get("PLAIN_PYTHON"):
        assert not is_compiled()
    elif not is_compiled():
        absent("there is no C compiler, or `make setup` was not run")


def run(bolt: AnyBolt) -> None:
    """Hand five tuples to a bolt, in one batch."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", FixedSpout([[n] for n in range(5)], outputs="n long"))
    builder.set_bolt("bolt", bolt).global_grouping("numbers")
    with LocalRunner(builder.create_topology()) as runner:
        runner.run_until_idle()


class Keeps(Bolt):
    """Keeps every second tuple, for as long as it lives."""

    kept: list[Tuple] = []  # noqa: RUF012 - shared, to be looked at
    objects: list[int] = []  # noqa: RUF012

    def execute(self, tup: Tuple) -> None:
        self.objects.append(id(tup))
        if tup["n"] % 2:
            self.kept.append(tup)
        self.collector.ack(tup)


def test_a_tuple_that_is_kept_stays_as_it_is() -> None:
    """One that nobody keeps lends its object to the next one."""
    run(Keeps())
    assert [tup["n"] for tup in Keeps.kept] == [1, 3]
    first, second, third, fourth, fifth = Keeps.objects
    assert first == second
    assert third == fourth
    assert len({second, fourth, fifth}) == 3


class Misuses(Bolt):
    """Hands the collector what is no tuple, and notes what that raises."""

    outputs = "n long"
    raised: list[type[Exception]] = []  # noqa: RUF012

    def execute(self, tup: Tuple) -> None:
        self.collector.ack(tup)

    def finish_batch(self) -> None:
        collector: Any = self.collector
        for wrong in (
            lambda: collector.ack(None),
            lambda: collector.ack("text"),
            lambda: collector.fail(None),
            lambda: collector.reset_timeout(7),
            lambda: collector.emit([1], anchors=7),
            lambda: collector.emit(7),
            lambda: collector.emit([1, 2]),
        ):
            with pytest.raises((AttributeError, TypeError, EmitError)) as raised:
                wrong()  # type: ignore[no-untyped-call]
            self.raised.append(raised.type)


def test_what_is_no_tuple_is_refused_and_does_no_harm() -> None:
    """Also where it is C that takes it."""
    run(Misuses())
    assert len(Misuses.raised) == 7


class Basic(BasicBolt):
    """Emits what is no list of values."""

    outputs = "n long"
    raised: list[type[Exception]] = []  # noqa: RUF012

    def execute(self, tup: Tuple, collector: BasicCollector) -> None:
        for wrong in (None, 7, [], [1, 2]):
            with pytest.raises(EmitError) as raised:
                collector.emit(wrong)  # type: ignore[arg-type]
            self.raised.append(raised.type)


def test_a_basic_bolt_is_told_what_cannot_be_emitted() -> None:
    """Each emit that is wrong raises, and none goes out."""
    run(Basic())
    assert Basic.raised == 5 * 4 * [EmitError]
