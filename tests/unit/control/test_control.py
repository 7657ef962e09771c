"""The control of a running topology: each question and order, over the real socket."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.checkpoint.holder import Holder
from sparkstorm.control.client import DriverGoneError, connect
from sparkstorm.control.control import Control
from sparkstorm.control.publishing import Published, published
from sparkstorm.control.registry import Entry, Registry
from sparkstorm.dead_letters import DeadLetter, LetterStore
from sparkstorm.errors import ConfigError, EnvironmentFault
from sparkstorm.spouts import ReplayingSpout
from sparkstorm.testing import LocalRunner, ManualClock
from tests.tools.steered import Steered, listed


class Orders(ReplayingSpout):
    """Emits orders, each under its number."""

    outputs = "order long, item string"

    def __init__(self, *items: str) -> None:
        self.items = list(enumerate(items))

    def next_message(self) -> tuple[str, list[Any]] | None:
        if not self.items:
            return None
        number, item = self.items.pop(0)
        return f"order-{number}", [number, item]


class Price(ss.BasicBolt):
    """Knows no price of some items."""

    outputs = "item string, price long"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["item"] == "unknown":
            logging.getLogger("shop").warning("no price for order %s", tup["order"])
            raise KeyError(tup["item"])
        collector.emit([tup["item"], 7])


class Refuse(ss.BasicBolt):
    """Refuses a line."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if "unknown" in tup.values:
            raise ValueError("unknown")


class Shop:
    """A running topology, and its control from outside."""

    def __init__(
        self,
        runner: LocalRunner,
        run: Steered,
        control: Control,
        entry: Entry,
        clock: ManualClock,
    ) -> None:
        self.runner = runner
        self.clock = clock
        self.run = run
        self.control = control
        self.entry = entry


@contextmanager
def shop(
    folder: Path, *items: str, bolt: ss.BasicBolt | None = None, **settings: Any
) -> Iterator[Shop]:
    builder = ss.TopologyBuilder()
    builder.set_spout("orders", Orders(*items))
    builder.set_bolt("price", bolt or Price(), 2).fields_grouping("orders", ["item"])
    with running(folder, builder, **settings) as here:
        yield here


@contextmanager
def running(folder: Path, builder: ss.TopologyBuilder, **settings: Any) -> Iterator[Shop]:
    clock, files = ManualClock(), MemoryFiles()
    config = ss.Config.parse({"user": {"api_key": "s3cret-value"}, **settings})
    with (
        LocalRunner(
            builder.create_topology(), name="shop", clock=clock, files=files, config=config
        ) as runner,
        listed(folder, runner, LetterStore(files), clock) as (run, entry),
    ):
        yield Shop(runner, run, connect(Registry(folder).find("shop")), entry, clock)


def test_the_topology_is_told_with_its_graph_and_without_secrets(tmp_path: Path) -> None:
    with shop(tmp_path) as here:
        view = here.control.topology()
    assert (view.id, view.name, view.master) == ("shop-a1b2", "shop", "local[2]")
    orders, price = view.components
    assert (orders.kind, price.kind) == ("spout", "bolt")
    assert orders.streams[0].fields == ["order", "item"]
    assert price.inputs[0].grouping == "fields(item)"
    assert price.inputs[0].fields == ["item"]
    assert len(price.tasks) == 2
    assert "s3cret" not in json.dumps(view.config)


def test_counts_latencies_and_batches_are_told(tmp_path: Path) -> None:
    with shop(tmp_path, "tea", "milk", "tea") as here:
        here.runner.run_until_idle()
        stand = here.control.situation()
        window = here.control.window("600")
    assert (stand.status, stand.acked, stand.pending) == ("ACTIVE", 3, 0)
    assert stand.batch_times[0].messages == 3
    price = next(one for one in window.components if one.component == "price")
    assert (price.executed, price.emitted) == (3, 3)
    assert price.execute.count == 3
    assert price.execute.buckets[-1][1] == 3
    assert price.inputs[0].component == "orders"
    orders = next(one for one in window.components if one.component == "orders")
    assert orders.complete.count == 3
    assert next(one for one in window.components if one.component == "__acker").acked == 3


def test_a_window_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with shop(tmp_path) as here, pytest.raises(ConfigError, match="600"):
        here.control.window("5")  # type: ignore[arg-type]


def test_a_stuck_message_is_found_with_its_tree_and_retried(tmp_path: Path) -> None:
    with shop(tmp_path, "tea", "unknown", max_retries=5) as here:
        here.runner.step()
        here.runner.plan_batch()
        (message,) = here.control.messages(component="price").messages
        assert (message.name, message.state) == ("order-1", "retry")
        detail = here.control.message(message.id)
        assert here.control.message("order-1") == detail
        assert here.control.message("order-77") is None
    assert detail is not None
    (line,) = detail.attempts[0].lines
    assert (line.text, line.name, line.attempt) == ("no price for order 1", "order-1", 1)
    assert detail.attempts[0].outcome == "error"
    assert "test_control.py" in detail.attempts[0].frame
    assert "KeyError" in detail.attempts[0].trace


def test_an_unfinished_message_is_copied_as_a_letter(tmp_path: Path) -> None:
    """By its name or its id, with its payload and its failure; nothing is written."""
    with shop(tmp_path, "tea", "unknown", max_retries=3) as here:
        here.runner.step()
        here.runner.plan_batch()
        (waiting,) = here.control.messages(state="retry").messages
        by_name, by_id = here.control.copy("order-1"), here.control.copy(waiting.id)
        assert here.control.letters().total == 0
        assert here.control.copy("order-0") is None
    assert by_name is not None
    assert by_id is not None
    letter = DeadLetter.from_json(by_name)
    assert letter.payload == {"order": 1, "item": "unknown"}
    assert (letter.msg_id, letter.failure.component) == ("order-1", "price")
    assert "KeyError" in letter.failure.message
    assert DeadLetter.from_json(by_id).id == letter.id


def test_only_failed_messages_wait_for_a_retry(tmp_path: Path) -> None:
    """Not those that their spout has just emitted."""
    with shop(tmp_path, "unknown", "tea", max_retries=9) as here:
        here.runner.ask_spouts()
        fresh = here.control.situation()
        here.runner.step()
        here.runner.plan_batch()
        failed = here.control.situation()
    assert (fresh.pending, fresh.waiting) == (2, 0)
    assert failed.waiting == 1


def test_a_message_that_waits_for_its_next_batch_is_still_the_oldest(tmp_path: Path) -> None:
    """Its age counts from its first attempt, and its payload is known."""
    with shop(tmp_path, "unknown", *["tea"] * 5, max_retries=9) as here:
        here.runner.step()
        here.runner.plan_batch()
        here.clock.advance(60)
        (waiting,) = here.control.messages(name="order-0").messages
        here.control.retry([waiting.id])
        here.runner.ask_spouts()
        found = here.control.messages().messages[0]
        copy = here.control.copy("order-0")
    assert (found.name, found.state) == ("order-0", "waiting")
    assert found.age_secs == 60
    assert copy is not None
    assert DeadLetter.from_json(copy).payload == {"order": 0, "item": "unknown"}


def test_a_message_of_a_partitioned_spout_is_read_once_more(tmp_path: Path) -> None:
    """The driver has only its offset."""
    lines = tmp_path / "lines.txt"
    lines.write_text("tea\nunknown\nmilk\n")
    builder = ss.TopologyBuilder()
    builder.set_spout("orders", ss.spouts.LinesSpout(str(lines)))
    builder.set_bolt("price", Refuse()).shuffle_grouping("orders")
    with running(tmp_path, builder, max_retries=3) as here:
        here.runner.step()
        here.runner.plan_batch()
        (waiting,) = here.control.messages(state="retry").messages
        found = here.control.copy(waiting.name)
    assert found is not None
    letter = DeadLetter.from_json(found)
    assert letter.payload is not None
    assert "unknown" in letter.payload.values()
    assert letter.failure.component == "price"


def test_a_message_that_was_given_up_says_so(tmp_path: Path) -> None:
    with shop(tmp_path, "unknown", max_retries=0) as here:
        here.runner.run_until_idle()
        detail = here.control.message("order-0")
    assert detail is not None
    assert detail.state == "given up"


def test_followed_texts_are_kept(tmp_path: Path) -> None:
    with shop(tmp_path, *["tea"] * 50) as here:
        here.control.follow("order-33")
        here.control.follow("nothing")
        here.control.unfollow("nothing")
        assert here.control.followed() == ["order-33"]
        here.runner.run_until_idle()
        detail = here.control.message("order-33")
    assert detail is not None
    tree = detail.attempts[0].tree
    assert tree is not None
    (node,) = tree.nodes
    assert (node.component, node.state) == ("price", "acked")
    assert node.values == {"order": "33", "item": "'tea'"}


def test_lines_of_components_are_told_by_component_and_level(tmp_path: Path) -> None:
    with shop(tmp_path, "unknown", max_retries=0) as here:
        here.runner.run_until_idle()
        lines = here.control.lines(component="price", level="warning")
        nothing = here.control.lines(component="orders", level="critical")
    assert "no price for order 0" in [line.text for line in lines]
    assert nothing == []


def test_levels_change_while_running(tmp_path: Path) -> None:
    with shop(tmp_path, "unknown", max_retries=0) as here:
        try:
            here.control.set_level("price", "critical")
            here.runner.run_until_idle()
            assert here.control.lines(component="price") == []
        finally:
            here.control.set_level("price", "notset")
        for component, level in (("none", "info"), ("price", "loud")):
            with pytest.raises(ConfigError):
                here.control.set_level(component, level)


def test_dead_letters_are_grouped_by_cause(tmp_path: Path) -> None:
    with shop(tmp_path, "unknown", "tea", "unknown", max_retries=0) as here:
        here.runner.run_until_idle()
        (group,) = here.control.letter_groups()
        found = here.control.letters(group=group.group, limit=1)
        letter = here.control.letter(found.letters[0].id)
        assert here.control.letters(offset=2).letters == []
        assert here.control.letter("00000000000000000000") is None
    assert (group.component, group.kind, group.count) == ("price", "KeyError", 2)
    assert found.total == 2
    assert letter == found.letters[0]
    assert letter is not None
    assert letter.values is not None
    assert letter.values["item"] == "unknown"


def test_a_letter_is_edited_and_replayed_and_the_original_stays(tmp_path: Path) -> None:
    with shop(tmp_path, "unknown", max_retries=0) as here:
        here.runner.run_until_idle()
        (letter,) = here.control.letters().letters
        request = here.control.replay(letters=[letter.id], values={"order": 0, "item": "tea"})
        (before,) = here.control.replays()
        assert (before.name, before.asked, before.pending) == (request, 1, 1)
        here.clock.advance(2)
        here.runner.run_until_idle()
        (after,) = here.control.replays()
        assert (after.acked, after.pending, after.left) == (1, 0, {})
        assert [one.id for one in here.control.letters().letters] == [letter.id]


def test_a_replay_says_what_did_not_go(tmp_path: Path) -> None:
    with shop(tmp_path, "unknown", "unknown", max_retries=0) as here:
        here.runner.run_until_idle()
        (group,) = here.control.letter_groups()
        here.control.replay(group=group.group)
        here.clock.advance(2)
        here.runner.run_until_idle()
        (replay,) = here.control.replays()
    assert (replay.asked, replay.acked, replay.pending, len(replay.left)) == (2, 0, 0, 2)
    assert all("KeyError" in why for why in replay.left.values())


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_replay_that_was_discarded_does_not_count_as_acked(tmp_path: Path, when: str) -> None:
    """Neither before the driver has read the request, nor after its replay has failed."""
    with shop(tmp_path, "unknown", "tea", "unknown", max_retries=0) as here:
        here.runner.run_until_idle()
        first, second = here.control.letters().letters
        here.control.replay(letters=[first.id], values={"order": 0, "item": "tea"})
        request = here.control.replay(letters=[second.id])
        if when == "before":
            here.control.discard(letters=[second.id])
        here.clock.advance(2)
        here.runner.run_until_idle()
        if when == "meanwhile":
            here.control.discard(letters=[second.id])
        here.clock.advance(2)
        here.runner.run_until_idle()
        discarded, acked = here.control.replays()
    assert discarded.name == request
    assert (discarded.acked, discarded.pending, discarded.gone) == (0, 0, 1)
    assert (acked.acked, acked.pending, acked.gone) == (1, 0, 0)


@pytest.mark.parametrize(
    "values", [{"item": "tea"}, {"order": 0, "item": "tea", "more": 1}, {"order": 0, "thing": 1}]
)
def test_new_values_need_the_fields_of_the_letter(tmp_path: Path, values: dict[str, Any]) -> None:
    with shop(tmp_path, "unknown", max_retries=0) as here:
        here.runner.run_until_idle()
        (letter,) = here.control.letters().letters
        with pytest.raises(ConfigError, match="order, item"):
            here.control.replay(letters=[letter.id], values=values)


def test_letters_are_discarded(tmp_path: Path) -> None:
    with shop(tmp_path, "unknown", "unknown", max_retries=0) as here:
        here.runner.run_until_idle()
        (group,) = here.control.letter_groups()
        assert here.control.discard(group=group.group) == 2
        assert here.control.letters().total == 0
        with pytest.raises(ConfigError):
            here.control.discard(letters=["nothing"])


def test_a_topology_rests_wakes_and_ends(tmp_path: Path) -> None:
    with shop(tmp_path) as here:
        here.control.deactivate()
        assert here.control.situation().status == "INACTIVE"
        here.control.activate()
        assert here.control.situation().status == "ACTIVE"
        here.control.kill(0)
        while here.run.stopped is None:
            here.control.situation()
    assert here.run.stopped == (False, 0)


def test_pausing_what_is_not_partitioned_is_refused(tmp_path: Path) -> None:
    with shop(tmp_path) as here, pytest.raises(ConfigError, match="partitioned"):
        here.control.pause("orders")


@pytest.mark.parametrize(
    "request_line",
    [
        b"nonsense",
        b"[]",
        b'{"method": "__init__"}',
        b'{"method": "stop"}',
        b'{"method": "topology", "arguments": {"x": 1}}',
        b'{"method": "messages", "arguments": {"limit": "many"}}',
        b'{"method": "letter", "arguments": {"letter": {"a": []}}}',
        b'{"method": "window", "arguments": []}',
        b"\xff\xfe",
    ],
)
def test_nonsense_is_answered_and_harms_nobody(tmp_path: Path, request_line: bytes) -> None:
    with shop(tmp_path) as here:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(here.entry.socket)
            client.sendall(request_line + b"\n")
            answer = json.loads(client.makefile("rb").readline())
        assert set(answer) <= {"error", "kind", "result"}
        assert here.control.situation().status == "ACTIVE"


def test_other_users_cannot_reach_the_socket(tmp_path: Path) -> None:
    with shop(tmp_path / "new"):
        assert (tmp_path / "new").stat().st_mode & 0o077 == 0


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(EnvironmentFault, match="SPARKSTORM_REGISTRY"):
        Registry(folder)


def test_without_a_registry_the_run_goes_on_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("SPARKSTORM_REGISTRY", str(tmp_path / "file" / "x"))
    builder = ss.TopologyBuilder()
    builder.set_spout("orders", Orders())
    with LocalRunner(builder.create_topology(), clock=ManualClock()) as runner:
        parts = Published(
            plan=runner.plan,
            coordinator=runner.coordinator,
            run=Steered(runner),
            store=LetterStore(MemoryFiles()),
            clock=ManualClock(),
            holder=Holder.here("a1b2", 0.0),
        )
        with published(parts) as entry:
            assert entry is None
    assert "nobody will see or steer this run" in caplog.text


def test_a_topology_that_has_ended_is_not_listed(tmp_path: Path) -> None:
    with shop(tmp_path) as here:
        control = here.control
        assert [one.name for one in Registry(tmp_path).entries()] == ["shop"]
    assert Registry(tmp_path).entries() == []
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DriverGoneError, match="has ended"):
        control.situation()
    with pytest.raises(ConfigError, match="running: none"):
        Registry(tmp_path).find("shop")


def test_a_killed_driver_is_told_with_its_checkpoint(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys, time; from sparkstorm.control.registry import *; "
        "from sparkstorm.checkpoint.holder import Holder; "
        "Registry(pathlib.Path(sys.argv[1])).add(Entry(id='shop-1', name='shop', "
        "holder=Holder.here('1', time.time()), checkpoint='/data/shop')); print('there', "
        "flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "r")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        driver.stdout.readline()
        assert not Registry(tmp_path / "r").find("shop").is_dead
        os.kill(driver.pid, signal.SIGKILL)
    (entry,) = Registry(tmp_path / "r").entries()
    assert entry.is_dead
    with pytest.raises(ConfigError, match="--checkpoint /data/shop"):
        Registry(tmp_path / "r").find("shop")


def test_an_entry_of_a_later_version_is_passed_over(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "r")
    (tmp_path / "r" / "odd.json").write_text('{"holder": {"run": "x"}, "new": 1}')
    (tmp_path / "r" / "half.json").write_text('{"holder"')
    assert registry.entries() == []


def test_a_socket_in_a_deep_folder_still_works(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    with shop(deep) as here:
        assert here.control.topology().name == "shop"


def test_one_of_two_runs_of_a_name_is_found_by_its_id(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "r")
    for run in ("a1", "a2", "b1"):
        registry.add(Entry(id=f"shop-{run}", name="shop", holder=Holder.here(run, 0.0)))
    with pytest.raises(ConfigError, match="give its id"):
        registry.find("shop")
    assert registry.find("shop-b").id == "shop-b1"


def test_a_driver_of_another_version_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shop(tmp_path) as here:
        monkeypatch.setattr("sparkstorm.control.server._plain", lambda result: {"new": "form"})
        with pytest.raises(EnvironmentFault, match="another version"):
            here.control.situation()
