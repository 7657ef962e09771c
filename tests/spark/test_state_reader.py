"""What ``sparkstorm state show`` reads, of a topology that is running."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.local.one_message import OneMessage
from sparkstorm.local.watching import Call
from sparkstorm.spark.driver.storage.kept_state import StateReader
from sparkstorm.spouts import LinesSpout
from sparkstorm.state.stores import MemoryStore
from sparkstorm.state.view import items_of
from sparkstorm.testing import PATIENCE_SECS
from sparkstorm.testing.messages import letter_of, plan_for_one

pytestmark = pytest.mark.spark

_TASKS = 2


def topology(text: Path) -> ss.Topology:
    """Lines, counted; the bolt's class travels by value."""

    class Count(ss.StatefulBolt):
        def execute(self, tup: ss.Tuple) -> None:
            line = tup["sentence"]
            self.state.put(line, self.state.get(line, 0) + 1)
            self.collector.ack(tup)

    builder = ss.TopologyBuilder()
    builder.set_spout("lines", LinesSpout(text))
    builder.set_bolt("count", Count(), _TASKS).fields_grouping("lines", "sentence")
    return builder.create_topology()


def test_the_state_of_a_running_topology_is_that_of_its_last_commit(
    spark: Any, tmp_path: Path
) -> None:
    """Read twice, with batches between."""
    text, where = tmp_path / "in.txt", str(tmp_path / "checkpoint")
    text.write_text("a\nb\na\n")

    def read() -> dict[str, int]:
        reader = StateReader(spark, where, 1)
        stores = [store for _, store in reader.chunks("count", _TASKS)]
        return {item.key: item.value for store in stores for item in items_of(store)}

    with ss.submit(topology(text), name="running", session=spark, checkpoint=where) as run:
        assert run.wait_until_drained(PATIENCE_SECS)
        assert read() == {"a": 2, "b": 1}
        with text.open("a") as file:
            file.write("b\nc\n" * 5)
        assert run.wait_until_drained(PATIENCE_SECS)
        assert read() == Counter("aab" + 5 * "bc")


def test_one_message_runs_with_the_committed_state(spark: Any, tmp_path: Path) -> None:
    """As a letter's message does in ``sparkstorm debug``; the checkpoint is only read."""
    text, where = tmp_path / "in.txt", str(tmp_path / "checkpoint")
    text.write_text("a\nb\na\n")
    with ss.submit(topology(text), name="one", session=spark, checkpoint=where) as run:
        assert run.wait_until_drained(PATIENCE_SECS)
    reader, seen = StateReader(spark, where, 1), []

    class See:
        """Notes the state that the bolt has before the call."""

        def call(self, call: Call) -> Any:
            if call.method == "execute":
                seen.append(dict(getattr(call.bolt, "state").items()))  # noqa: B009 - of some bolts
            return call.bound()(*call.arguments)

        async def await_call(self, call: Call) -> Any:
            return self.call(call)

    def open_store(task: str) -> MemoryStore:
        component, _, index = task.rpartition("/")
        return reader.task(component, int(index), has_entries=False)

    plan = plan_for_one(topology(text), partitions=2)
    one = OneMessage(plan, letter_of("lines", {"sentence": "a"}), open_store=open_store)
    before = {p: p.read_bytes() for p in Path(where).rglob("*") if p.is_file()}
    for _ in range(2):  # no run sees the changes of the run before
        assert one.run(See()).failure is None
    assert [state["a"] for state in seen] == [2, 2]
    assert {p: p.read_bytes() for p in Path(where).rglob("*") if p.is_file()} == before
