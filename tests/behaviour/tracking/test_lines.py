"""Log lines of components, with the message that was executed meanwhile."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.batches.messages.kept import Kept
from sparkstorm.errors import ConfigError
from sparkstorm.spouts import ReplayingSpout
from sparkstorm.tasks.report import LINES
from sparkstorm.testing import LocalRunner, ManualClock

SHOP = logging.getLogger("shop")


class Orders(ReplayingSpout):
    """Emits orders, each under its number."""

    outputs = "item string"

    def __init__(self, *items: str) -> None:
        self.items = list(enumerate(items))

    def next_message(self) -> tuple[str, list[Any]] | None:
        if not self.items:
            return None
        number, item = self.items.pop(0)
        return f"order-{number}", [item]


class Basic(ss.BasicBolt):
    """Logs and prints each item, and fails some."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        SHOP.debug("looking at %s", tup["item"])
        SHOP.warning("got %s", tup["item"])
        print("seen", tup["item"])  # noqa: T201
        if tup["item"] == "bad":
            raise ValueError(tup["item"])


class Manual(ss.Bolt):
    """The same, acking by itself."""

    def execute(self, tup: ss.Tuple) -> None:
        SHOP.warning("got %s", tup["item"])
        print("seen", tup["item"])  # noqa: T201
        if tup["item"] == "bad":
            self.collector.fail(tup)
        else:
            self.collector.ack(tup)


class Awaiting(ss.BasicBolt):
    """The same, as a coroutine: many at a time."""

    async def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        await asyncio.sleep(0)
        SHOP.warning("got %s", tup["item"])
        await asyncio.sleep(0)
        print("seen", tup["item"])  # noqa: T201
        if tup["item"] == "bad":
            raise ValueError(tup["item"])


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    """Put the level of the component's logger back."""
    yield
    logging.getLogger(f"{LINES}.look").setLevel(logging.NOTSET)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def shop(
    bolt: ss.Bolt | ss.BasicBolt, clock: ManualClock, *items: str, at_once: int = 1, **settings: Any
) -> LocalRunner:
    builder = ss.TopologyBuilder()
    builder.set_spout("orders", Orders(*items))
    builder.set_bolt("look", bolt, 2, at_once).shuffle_grouping("orders")
    config = ss.Config.parse({"max_retries": 1, **settings})
    topology = builder.create_topology()
    return LocalRunner(topology, name="shop", config=config, clock=clock)


def kept(runner: LocalRunner, name: str) -> Kept:
    found = runner.coordinator.inquiry.kept(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("bolt", "at_once"), [(Basic, 1), (Manual, 1), (Awaiting, 4), (Basic, 4), (Manual, 4)]
)
def test_a_line_names_its_message_and_attempt(
    bolt: type[ss.Bolt | ss.BasicBolt],
    at_once: int,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Also where several tuples are executed at a time."""
    items = {"order-0": "tea", "order-1": "bad", "order-2": "milk"}
    with (
        caplog.at_level(logging.INFO, LINES),
        shop(bolt(), clock, *items.values(), at_once=at_once) as runner,
    ):
        runner.run_until_idle()
        clock.advance(60)
        runner.run_until_idle()
        message = kept(runner, "order-1").named.id
    records = [vars(record) for record in caplog.records if hasattr(record, "line")]
    told = {
        (one["message_name"], one["attempt"], one["line"].text)
        for one in records
        if one["line"].text.startswith(("got", "seen"))
    }
    wanted = {
        (name, 1, f"{verb} {item}") for name, item in items.items() for verb in ("got", "seen")
    }
    assert told == wanted | {("order-1", 2, "got bad"), ("order-1", 2, "seen bad")}
    first = next(one for one in records if one["line"].text == "got bad")
    assert (first["topology"], first["component"], first["message_id"]) == ("shop", "look", message)
    assert first["task"] == first["line"].task > 0


def test_attempts_keep_their_lines_side_by_side(clock: ManualClock) -> None:
    with shop(Basic(), clock, "tea", "bad") as runner:
        runner.run_until_idle()
        clock.advance(60)
        runner.run_until_idle()
        first, second = (attempt.view() for attempt in kept(runner, "order-1").attempts)
    assert [line.text for line in first.lines] == ["got bad", "seen bad"]
    assert [line.attempt for line in second.lines] == [2, 2]
    assert [line.level for line in second.lines] == ["warning", "print"]


def test_lines_of_acked_messages_take_no_memory(clock: ManualClock) -> None:
    """But for the few that are kept with their tree."""
    with shop(Basic(), clock, *["tea"] * 500) as runner:
        runner.run_until_idle()
        lines = runner.coordinator._bookkeeper._chronicle.lines
        assert 0 < len(lines._kept) <= runner.number


def test_a_level_set_while_running_reaches_the_tasks(clock: ManualClock) -> None:
    """From the next batch on: finer lines are made, coarser lines not even sent."""
    with shop(Basic(), clock, "bad", max_retries=9) as runner:
        levels = runner.coordinator.inquiry.levels
        for level in ("debug", "error", "notset"):
            levels.set("look", level)
            runner.run_until_idle()
            clock.advance(3600)
        attempts = [attempt.view() for attempt in kept(runner, "order-0").attempts]
    texts = [[line.text for line in attempt.lines] for attempt in attempts]
    assert texts == [["looking at bad", "got bad", "seen bad"], [], ["got bad", "seen bad"]]


@pytest.mark.parametrize(("component", "level"), [("none", "info"), ("look", "loud")])
def test_a_level_that_cannot_be_set_is_refused(
    component: str, level: str, clock: ManualClock
) -> None:
    with shop(Basic(), clock) as runner, pytest.raises(ConfigError):
        runner.coordinator.inquiry.levels.set(component, level)
