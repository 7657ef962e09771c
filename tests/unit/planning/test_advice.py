"""Advice: what the engine tells the author of a topology, and runs all the same."""

import sparkstorm as ss
from sparkstorm.multilang import ShellBolt
from sparkstorm.planning.explain import explain
from sparkstorm.planning.passes import make_plan
from sparkstorm.spouts import IteratorSpout


class Count(ss.StatefulBolt):
    """Counts numbers."""

    def execute(self, tup: ss.Tuple) -> None:
        self.state.add(tup["n"])
        self.collector.ack(tup)


def explained(tasks: int, grouping: str, bolt: ss.StatefulBolt | None = None) -> str:
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", IteratorSpout(range(3), "n int"))
    reader = builder.set_bolt("count", bolt or Count(), parallelism=tasks)
    if grouping == "fields":
        reader.fields_grouping("numbers", "n")
    else:
        getattr(reader, f"{grouping}_grouping")("numbers")
    return explain(make_plan(builder.create_topology(), name="t", config=ss.Config()))


def test_state_over_scattered_tuples_gets_a_note() -> None:
    """Each of several tasks would count a part."""
    note = "note: bolt 'count' keeps state in 2 tasks, and reads 'numbers' by a grouping"
    for grouping in ("shuffle", "local_or_shuffle", "none"):
        assert note in explained(2, grouping)


def test_state_that_sees_all_of_a_key_gets_none() -> None:
    """One task, a copy for each, or a task for each key."""
    for tasks, grouping in ((1, "shuffle"), (2, "fields"), (2, "all"), (2, "global")):
        assert "note:" not in explained(tasks, grouping)


def test_bolts_that_come_with_sparkstorm_get_none() -> None:
    """A shell bolt keeps tuples that its child has not acked: any grouping will do."""
    assert "note:" not in explained(2, "shuffle", ShellBolt("cat", outputs="n int"))
