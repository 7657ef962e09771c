"""Where each grouping sends tuples, under both runners."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import sparkstorm as ss
from sparkstorm.testing import FixedSpout

TASKS = 4
ROWS: list[list[Any]] = [[f"key{n % 37}", n] for n in range(600)]


class Where(ss.BasicBolt):
    """Emits the index of its task with the tuple."""

    outputs = "index int, key string, n int"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([self.context.task_index, tup["key"], tup["n"]])


class LastTwo(ss.CustomGrouping):
    """Sends to the last two tasks what is even, and nowhere what is odd."""

    def choose_tasks(
        self, values: Sequence[Any], tasks: Sequence[int], sequence: int
    ) -> Sequence[int]:
        return list(tasks[-2:]) if values[1] % 2 == 0 else []


class PickTask(ss.BasicBolt):
    """Emits to the task of its choice."""

    outputs = ss.Stream("key string, n int", direct=True)

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        tasks = self.context.component_tasks("direct")
        collector.emit_direct(tasks[tup["n"] % len(tasks)], tup.values)


def test_each_grouping(run_topology: Any) -> None:
    """Each grouping gives every task the share that it promises, and loses or doubles nothing."""
    builder = ss.TopologyBuilder()
    builder.set_spout("rows", FixedSpout(ROWS, "key string, n int"), parallelism=2)
    builder.set_bolt("shuffle", Where(), TASKS).shuffle_grouping("rows")
    builder.set_bolt("none", Where(), TASKS).none_grouping("rows")
    builder.set_bolt("local", Where(), TASKS).local_or_shuffle_grouping("rows")
    builder.set_bolt("fields", Where(), TASKS).fields_grouping("rows", ["key"])
    builder.set_bolt("partial", Where(), TASKS).partial_key_grouping("rows", ["key"])
    builder.set_bolt("all", Where(), TASKS).all_grouping("rows")
    builder.set_bolt("global", Where(), TASKS).global_grouping("rows")
    builder.set_bolt("custom", Where(), TASKS).custom_grouping("rows", LastTwo())
    builder.set_bolt("pick", PickTask()).shuffle_grouping("rows")
    builder.set_bolt("direct", Where(), TASKS).direct_grouping("pick")
    with run_topology(builder.create_topology()) as play:
        statistics = play.drain()
        assert (statistics.acked, statistics.failed) == (len(ROWS), 0)
        seen = {name: play.emitted(name) for name in play.topology.components}
    load = {name: Counter(row[0] for row in rows) for name, rows in seen.items()}
    whole = sorted(n for _, n in ROWS)
    for name in ("shuffle", "none", "local", "fields", "partial", "global", "direct"):
        assert sorted(row[2] for row in seen[name]) == whole, name
    for name in ("shuffle", "none"):
        assert max(load[name].values()) - min(load[name].values()) <= 2 * 8, name
    assert len(load["local"]) == TASKS
    assert len({(row[1], row[0]) for row in seen["fields"]}) == 37
    tasks_of = {key: {i for i, k, _ in seen["partial"] if k == key} for key in ("key0", "key1")}
    assert all(len(tasks) <= 2 for tasks in tasks_of.values())
    assert max(load["partial"].values()) < 2 * len(ROWS) / TASKS
    assert load["all"] == dict.fromkeys(range(TASKS), len(ROWS))
    assert load["global"] == {0: len(ROWS)}
    assert load["custom"] == {2: len(ROWS) // 2, 3: len(ROWS) // 2}
    assert all(row[0] == row[2] % TASKS for row in seen["direct"])


def test_fields_grouping_by_bytes(run_locally: Any) -> None:
    """testFieldGrouping: byte-array keys of 4 spout tasks meet in one task each, counts 1..24."""
    rows = [[bytes([key]), n] for n in range(24) for key in range(6)]
    builder = ss.TopologyBuilder()
    builder.set_spout("rows", FixedSpout(rows, "key binary, n int"), parallelism=4)
    builder.set_bolt("where", Count(), parallelism=6).fields_grouping("rows", ["key"])
    with run_locally(builder.create_topology()) as play:
        play.drain()
        for key in range(6):
            counts = [count for k, count in play.emitted("where") if k == bytes([key])]
            assert counts == list(range(1, 25))


class Count(ss.StatefulBolt):
    """Counts keys."""

    outputs = "key binary, count int"

    def execute(self, tup: ss.Tuple) -> None:
        count = self.state.get(tup["key"], 0) + 1
        self.state.put(tup["key"], count)
        self.collector.emit([tup["key"], count], anchors=tup)
        self.collector.ack(tup)


def test_shuffle_is_even(run_locally: Any) -> None:
    """testShuffle: each of two targets gets half of many tuples."""
    rows = [["k", n] for n in range(10_000)]
    builder = ss.TopologyBuilder()
    builder.set_spout("rows", FixedSpout(rows, "key string, n int"))
    builder.set_bolt("where", Where(), parallelism=2).shuffle_grouping("rows")
    with run_locally(builder.create_topology()) as play:
        play.drain()
        load = Counter(row[0] for row in play.emitted("where"))
        assert all(0.49 <= share / len(rows) <= 0.51 for share in load.values())
