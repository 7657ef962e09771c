"""A changed topology on an old checkpoint: what goes on, and what is refused with the mend."""

from collections.abc import Callable
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.checkpoint.manifest import Manifest
from sparkstorm.checkpoint.seal import write_sealed
from sparkstorm.planning.passes import make_plan
from sparkstorm.planning.plan import Plan
from sparkstorm.spouts import IteratorSpout, LinesSpout
from sparkstorm.testing import FeederSpout


class Step(ss.BasicBolt):
    """Keeps no state."""

    outputs = "sentence string, word string"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Pass it on."""


class Keeper(ss.StatefulBolt):
    """Keeps state."""

    outputs = "sentence string, word string"

    def execute(self, tup: ss.Tuple) -> None:
        """Ack it."""
        self.collector.ack(tup)


class Attributes(Step):
    """Keeps state in its attributes."""

    stateful = True


class BetterKeeper(Keeper):
    """The same bolt after some months."""


Wire = Callable[[ss.TopologyBuilder], Any]


def usual(builder: ss.TopologyBuilder) -> object:
    """Lines, a step, and two tasks that keep state by word."""
    builder.set_spout("lines", LinesSpout("x"))
    builder.set_bolt("split", Step(), parallelism=2).shuffle_grouping("lines")
    return builder.set_bolt("count", Keeper(), parallelism=2).fields_grouping("split", ["word"])


def counting(
    bolt: Any = None,
    tasks: int = 2,
    group: Callable[[Any], Any] | None = None,
    spout: Any = None,
    **steps: int,
) -> Wire:
    """The usual topology with changes: the bolt with state, its tasks, its grouping, steps."""

    def wire(builder: ss.TopologyBuilder) -> None:
        builder.set_spout("lines", spout or LinesSpout("x"))
        builder.set_bolt("split", Step(), steps.pop("split", 2)).shuffle_grouping("lines")
        for name, count in steps.items():
            builder.set_bolt(name, Step(), count).shuffle_grouping("lines")
        declarer = builder.set_bolt("count", bolt or Keeper(), tasks)
        if group:
            group(declarer)
        else:
            declarer.fields_grouping("split", ["word"])

    return wire


def behind_another(builder: ss.TopologyBuilder) -> None:
    """The step with state reads from another one, by the same field."""
    builder.set_spout("lines", LinesSpout("x"))
    builder.set_bolt("split", Step()).shuffle_grouping("lines")
    builder.set_bolt("a-clean", Step(), parallelism=3).shuffle_grouping("split")
    builder.set_bolt("count", Keeper(), parallelism=2).fields_grouping("a-clean", ["word"])
    builder.set_bolt("report", Step()).shuffle_grouping("count")


def two_keepers(first: str, second: str) -> Wire:
    """Two bolts with state, one behind the other."""

    def wire(builder: ss.TopologyBuilder) -> None:
        builder.set_spout("lines", LinesSpout("x"))
        builder.set_bolt(first, Keeper()).shuffle_grouping("lines")
        builder.set_bolt(second, Keeper()).shuffle_grouping(first)

    return wire


def beside_each_other(builder: ss.TopologyBuilder) -> None:
    """Another bolt with state on the level where there is one."""
    usual(builder)
    builder.set_bolt("total", Keeper()).global_grouping("split")


def plan_of(wire: Wire, *, name: str = "t", partitions: int = 2) -> Plan:
    """The plan of what is wired so."""
    builder = ss.TopologyBuilder()
    wire(builder)
    return make_plan(builder.create_topology(), name=name, partitions=partitions)


def check(old: Plan, new: Plan) -> None:
    """Run the new topology on the checkpoint of the old one, as far as its manifest is asked."""
    files = MemoryFiles()
    Manifest.of(old).write(files)
    found = Manifest.read(files)
    assert found == Manifest.of(old)
    found.check(new, "/checkpoint")


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(usual, id="nothing"),
        pytest.param(counting(BetterKeeper()), id="code"),
        pytest.param(counting(split=5), id="parallelism of a stateless bolt"),
        pytest.param(counting(aside=1), id="a stateless bolt more"),
        pytest.param(behind_another, id="stateless bolts before and behind"),
        pytest.param(beside_each_other, id="a stateful bolt on a level that has one"),
        pytest.param(
            counting(group=lambda d: d.fields_grouping("split", ["word"]).all_grouping("lines")),
            id="copies to all tasks",
        ),
    ],
)
def test_safe_changes_go_on(changed: Wire) -> None:
    """State is found where it was: the same tasks, partitions, stages and keys."""
    old, new = plan_of(usual), plan_of(changed)
    check(old, new)
    homes = [[plan.home(task) for task in plan.tasks["count"]] for plan in (old, new)]
    assert homes[0] == homes[1]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param(usual, counting(tasks=3), r"'count' with 2 tasks \(now 3\)", id="tasks"),
        pytest.param(
            usual, counting(bolt=Attributes()), r"by key in memory \(now as attributes\)", id="kind"
        ),
        pytest.param(
            usual,
            counting(
                group=lambda d: d.fields_grouping("split", ["word"]).add_configuration(
                    "state_backend", "rocksdb"
                )
            ),
            r"by key in memory \(now by key in rocksdb\)",
            id="back end",
        ),
        pytest.param(usual, counting(bolt=Step()), "no such stateful bolt", id="no state"),
        pytest.param(
            usual,
            counting(group=lambda declarer: declarer.shuffle_grouping("split")),
            r"grouped by fields\(word\) \(now shuffle\)",
            id="grouping",
        ),
        pytest.param(
            usual,
            counting(group=lambda declarer: declarer.fields_grouping("split", ["sentence"])),
            r"grouped by fields\(word\) \(now fields\(sentence\)\)",
            id="field",
        ),
        pytest.param(two_keepers("a", "b"), two_keepers("b", "a"), "stage 1", id="order"),
        pytest.param(
            two_keepers("a", "b"), two_keepers("a", "c"), "'b', but the topology", id="renamed"
        ),
        pytest.param(
            usual,
            lambda builder: (
                usual(builder),
                builder.set_bolt("more", Keeper()).shuffle_grouping("count"),
            ),
            "which Spark refuses: leave 'more' out",
            id="a stage with state more",
        ),
        pytest.param(
            usual,
            counting(spout=FeederSpout("sentence string")),
            r"progress of spout 'lines' \(LinesSpout × 1\)",
            id="another source",
        ),
        pytest.param(
            lambda builder: (
                usual(builder),
                builder.set_spout("more", IteratorSpout([], "n int")),
            ),
            usual,
            "progress of spout 'more'",
            id="a source less",
        ),
    ],
)
def test_other_changes_are_refused_with_the_mend(old: Wire, new: Wire, words: str) -> None:
    """What state and progress depend on may not change; the error names it and the mend."""
    with pytest.raises(ss.CheckpointError, match=words) as caught:
        check(plan_of(old), plan_of(new))
    assert "/checkpoint" in str(caught.value)
    assert "or use another checkpoint folder" in str(caught.value)


def test_a_grouping_does_not_matter_to_a_single_task() -> None:
    """All tuples go to the one task, whatever the grouping."""
    one, other = counting(tasks=1), counting(tasks=1, group=lambda d: d.shuffle_grouping("split"))
    check(plan_of(one), plan_of(other))


@pytest.mark.parametrize(
    ("changed", "words"),
    [({"name": "b"}, "belongs to the topology 't'"), ({"partitions": 3}, "made with 2 partitions")],
)
def test_name_and_partitions_stay(changed: Any, words: str) -> None:
    """A checkpoint is bound to the topology's name, its state to the number of partitions."""
    with pytest.raises(ss.CheckpointError, match=words):
        check(plan_of(usual), plan_of(usual, **changed))


def test_a_new_folder_has_no_manifest() -> None:
    """Anything may start there."""
    assert Manifest.read(MemoryFiles()) is None


@pytest.mark.parametrize("cut", [0, 1, 2])
def test_a_manifest_that_was_cut_is_named(cut: int) -> None:
    """Nothing, half of it, or all but its last byte."""
    files = MemoryFiles()
    Manifest.of(plan_of(usual)).write(files)
    data = files.read("manifest.json")
    assert data is not None
    files.write("manifest.json", data[: [0, len(data) // 2, len(data) - 1][cut]])
    with pytest.raises(ss.CheckpointError, match=r"sparkstorm/manifest.json is damaged.*Restore"):
        Manifest.read(files)


@pytest.mark.parametrize("damaged", [b"{}", b"", b'{"version": 1, "state": {"a": {"b": 1}}}'])
def test_unreadable_manifest(damaged: bytes) -> None:
    """A damaged manifest is an error of the checkpoint, not a new checkpoint."""
    files = MemoryFiles()
    write_sealed(files, "manifest.json", damaged)
    with pytest.raises(ss.CheckpointError, match=r"sparkstorm/manifest.json is unreadable.*backup"):
        Manifest.read(files)


def test_a_checkpoint_of_a_later_version_is_refused() -> None:
    """What stands in its files may mean something else."""
    files = MemoryFiles()
    write_sealed(files, "manifest.json", b'{"version": 2, "what": "is new"}')
    with pytest.raises(ss.CheckpointError, match="a later version of sparkstorm has written"):
        Manifest.read(files)
