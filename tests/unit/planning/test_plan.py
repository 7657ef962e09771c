"""Plans: task numbers, levels, routes and stages. Whole plans are pinned down in tests/plan."""

import pickle
from collections.abc import Callable, Mapping

import pytest

from sparkstorm import (
    BasicBolt,
    BasicCollector,
    Config,
    ConfigError,
    Spout,
    StatefulBolt,
    Stream,
    TopologyBuilder,
    TopologyError,
    Tuple,
)
from sparkstorm.planning.explain import mermaid
from sparkstorm.planning.levels import levels_of
from sparkstorm.planning.passes import make_plan
from sparkstorm.planning.plan import ACKER, Plan, Route, StageKind, StreamKey
from sparkstorm.topology.grouping import All, Direct, Shuffle


class Source(Spout):
    """Emits to a stream and, directly, to another one."""

    def __init__(self) -> None:
        self.outputs = {"default": "a string", "aside": Stream(["x"], direct=True)}

    def next_tuple(self) -> None:
        """Emit nothing."""


class Step(BasicBolt):
    """A step."""

    outputs = "a string"

    def execute(self, tup: Tuple, collector: BasicCollector) -> None:
        """Emit nothing."""


class Keep(StatefulBolt):
    """A step with state."""

    outputs = "a string"

    def execute(self, tup: Tuple) -> None:
        """Emit nothing."""


Wire = Callable[[TopologyBuilder], object]


def plan(wire: Wire = lambda _: None, *, partitions: int = 2, **options: object) -> Plan:
    """The plan of a topology with a spout ``spout`` and what is wired to it."""
    builder = TopologyBuilder()
    builder.set_spout("spout", Source())
    wire(builder)
    return make_plan(builder.create_topology(), partitions=partitions, **options)  # type: ignore[arg-type]


def chain(*steps: tuple[str, str, int]) -> Wire:
    """Bolts in a row, each given by its kind, its grouping and its parallelism."""

    def wire(builder: TopologyBuilder) -> None:
        source = "spout"
        for number, (kind, grouping, parallelism) in enumerate(steps):
            bolt = Keep() if kind == "state" else Step()
            declarer = builder.set_bolt(f"b{number}", bolt, parallelism)
            more = ["a"] if grouping == "fields" else []
            getattr(declarer, f"{grouping}_grouping")(source, *more)
            source = f"b{number}"

    return wire


def stages(plan: Plan) -> list[tuple[str, tuple[int, ...]]]:
    """The kind and the levels of each stage."""
    return [(stage.kind.value, stage.levels) for stage in plan.stages]


def test_tasks_are_numbered_in_order_of_the_ids() -> None:
    """From 1, the ackers among them, whatever the order in which components were added."""
    found = plan(
        lambda b: (
            b.set_bolt("z", Step(), 2).shuffle_grouping("spout"),
            b.set_bolt("Z", Step(), 3).shuffle_grouping("spout"),
            b.set_bolt("a", Step()).shuffle_grouping("z"),
        )
    )
    assert found.tasks == {
        "Z": range(1, 4),
        "__acker": range(4, 6),
        "a": range(6, 7),
        "spout": range(7, 8),
        "z": range(8, 10),
    }
    assert [found.component_of(task) for task in (1, 4, 7, 9)] == ["Z", ACKER, "spout", "z"]


@pytest.mark.parametrize(
    ("settings", "ackers", "partitions"),
    [
        ({}, 3, 3),
        ({"acker_executors": 1}, 1, 3),
        ({"acker_executors": 8}, 8, 3),
        ({"acker_executors": 0}, 0, 3),
        ({"partitions": 5}, 5, 5),
    ],
)
def test_there_is_an_acker_for_each_partition(
    settings: Mapping[str, int], ackers: int, partitions: int
) -> None:
    """Unless the settings say otherwise."""
    found = plan(partitions=3, config=Config(**settings))
    assert (len(found.ackers), found.partitions) == (ackers, partitions)
    assert found.tracked == (ackers > 0)
    assert (found.stages[-1].kind is StageKind.ACK) == (ackers > 0)


def test_there_may_be_many_tasks_but_not_any_number() -> None:
    """Task numbers are part of roots."""
    assert len(plan(chain(("step", "all", 32_000))).tasks["b0"]) == 32_000
    with pytest.raises(TopologyError, match="there are 32769 tasks: at most 32768 are possible"):
        plan(chain(("step", "all", 32_766)), partitions=2)
    assert len(plan(chain(("step", "all", 32_765)), partitions=2).tasks) == 3


def test_a_bolt_runs_behind_everything_that_it_reads() -> None:
    """Its level is its longest path from a spout."""
    builder = TopologyBuilder()
    builder.set_bolt("join", Step()).shuffle_grouping("late").shuffle_grouping("spout")
    builder.set_bolt("late", Keep()).shuffle_grouping("early")
    builder.set_bolt("early", Step()).shuffle_grouping("spout")
    builder.set_bolt("also", Step()).all_grouping("spout")
    builder.set_spout("spout", Source())
    found = [(level.components, level.stateful) for level in levels_of(builder.create_topology())]
    assert found == [
        (("spout",), False),
        (("also", "early"), False),
        (("late",), True),
        (("join",), False),
    ]


def test_a_route_for_each_subscriber() -> None:
    """A stream that nobody reads has none."""
    found = plan(
        lambda b: (
            b.set_bolt("a", Step(), 2).all_grouping("spout").direct_grouping("spout", "aside"),
            b.set_bolt("b", Step()).shuffle_grouping("spout"),
        )
    )
    assert found.routes == {
        StreamKey("spout", "default"): (
            Route(target="a", tasks=found.tasks["a"], grouping=All()),
            Route(target="b", tasks=found.tasks["b"], grouping=Shuffle()),
        ),
        StreamKey("spout", "aside"): (
            Route(target="a", tasks=found.tasks["a"], grouping=Direct()),
        ),
        StreamKey("a", "default"): (),
        StreamKey("b", "default"): (),
    }


def test_streams_are_numbered() -> None:
    """In their order, the same in every process; the ticks' stream is the last."""
    found = plan(chain(("step", "shuffle", 1)))
    keys = [StreamKey("b0", "default"), StreamKey("spout", "aside"), StreamKey("spout", "default")]
    keys.append(StreamKey("__system", "__tick"))
    assert list(found.stream_keys) == keys
    assert [found.stream_number[key] for key in keys] == [0, 1, 2, 3]
    assert found.stream(keys[1]) == Stream(["x"], direct=True)
    assert str(keys[1]) == "spout/aside"


def test_a_task_lives_in_one_partition() -> None:
    """They go round; a component may have several in one, or none."""
    found = plan(chain(("step", "shuffle", 3)), partitions=2)
    tasks = found.tasks["b0"]
    assert [found.home(task) for task in tasks] == [task % 2 for task in tasks]
    assert found.local_tasks("b0", 0) + found.local_tasks("b0", 1) != []
    assert sorted(found.local_tasks("b0", 0) + found.local_tasks("b0", 1)) == list(tasks)
    assert sorted(map(len, (found.local_tasks("b0", p) for p in range(2)))) == [1, 2]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], [("read", (0,))]),
        ([("step", "shuffle", 2)], [("read", (0,)), ("map", (1,))]),
        ([("step", "local_or_shuffle", 2)], [("read", (0, 1))]),
        ([("step", "local_or_shuffle", 3)], [("read", (0, 1))]),
        # No task in one of the two partitions: what is read there has to move.
        ([("step", "local_or_shuffle", 1)], [("read", (0,)), ("map", (1,))]),
        ([("state", "local_or_shuffle", 2)], [("read", (0,)), ("state", (1,))]),
        (
            [("step", "local_or_shuffle", 2), ("state", "local_or_shuffle", 2)],
            [("read", (0, 1)), ("state", (2,))],
        ),
        (
            [("step", "shuffle", 2), ("state", "local_or_shuffle", 2)],
            [("read", (0,)), ("state", (1, 2))],
        ),
        (
            [("state", "shuffle", 2), ("step", "local_or_shuffle", 2), ("step", "global", 2)],
            [("read", (0,)), ("state", (1, 2)), ("map", (3,))],
        ),
        (
            [("step", "fields", 1), ("step", "none", 2), ("step", "all", 2)],
            [("read", (0,)), ("map", (1,)), ("map", (2,)), ("map", (3,))],
        ),
    ],
)
def test_levels_share_a_stage_where_no_data_moves(
    steps: list[tuple[str, str, int]], expected: list[tuple[str, tuple[int, ...]]]
) -> None:
    """By local_or_shuffle with a task in each partition; state never shares the read stage."""
    assert stages(plan(chain(*steps))) == [*expected, ("ack", ())]


def test_a_bolt_that_also_reads_from_further_away_has_a_stage_of_its_own() -> None:
    """Its input comes through an exchange."""
    found = plan(
        lambda b: (
            b.set_bolt("a", Step(), 2).local_or_shuffle_grouping("spout"),
            b.set_bolt("b", Step(), 2)
            .local_or_shuffle_grouping("a")
            .local_or_shuffle_grouping("spout"),
        )
    )
    assert stages(found) == [("read", (0, 1)), ("map", (2,)), ("ack", ())]


def test_one_bolt_of_a_level_that_needs_an_exchange_is_enough() -> None:
    """A stage holds whole levels."""
    found = plan(
        lambda b: (
            b.set_bolt("a", Step(), 2).local_or_shuffle_grouping("spout"),
            b.set_bolt("b", Step(), 2).shuffle_grouping("spout"),
        )
    )
    assert stages(found) == [("read", (0,)), ("map", (1,)), ("ack", ())]


def test_a_component_can_be_tapped() -> None:
    """All its streams then come out in the driver; an unknown one is an error."""
    assert plan(taps=["spout"]).taps == {StreamKey("spout", s) for s in ("default", "aside")}
    with pytest.raises(TopologyError, match="cannot tap 'x': there are spout"):
        plan(taps=["x"])


@pytest.mark.parametrize("name", ["word-count", "A.b_c", "9", "größe"])
def test_a_name_can_be_that_of_a_folder(name: str) -> None:
    """It names the checkpoint."""
    assert plan(name=name).name == name


@pytest.mark.parametrize("name", ["", ".", "..", "-x", "_x", "a/b", "a b", "a\n"])
def test_other_names_are_refused(name: str) -> None:
    """With what a name may be."""
    with pytest.raises(ConfigError, match="is not a topology name: use letters, digits"):
        plan(name=name)


def test_stateful_components_are_known() -> None:
    """Sorted."""
    found = plan(chain(("state", "shuffle", 1), ("step", "shuffle", 1), ("state", "shuffle", 1)))
    assert found.stateful_components() == ("b0", "b2")


def test_a_plan_travels() -> None:
    """To the workers; what they look up there is the same."""
    here = plan(chain(("state", "shuffle", 3)))
    there: Plan = pickle.loads(pickle.dumps(here))
    assert (there.tasks, there.stages, there.routes) == (here.tasks, here.stages, here.routes)
    assert there.stream_keys == here.stream_keys
    assert there.component_of(2) == here.component_of(2)


def test_a_picture_quotes_what_would_end_its_labels() -> None:
    """Ids may hold nearly anything."""
    found = plan(lambda b: b.set_bolt('say "hi" [é]', Step()).shuffle_grouping("spout"))
    assert 'c_say_20__22_hi_22__20__5b_é_5d_["say #quot;hi#quot; [é] × 1"]' in mermaid(found)


def test_the_workers_plan_has_no_hosted_spouts() -> None:
    """They live in the driver: what they hold does not travel with every task."""
    whole = plan(chain(("b0", "shuffle", 1)))
    lean = whole.for_workers()
    assert isinstance(whole.spec("spout").component, Source)
    assert not isinstance(lean.spec("spout").component, Source)
    assert lean.spec("spout").is_spout
    assert lean.spec("spout").streams == whole.spec("spout").streams
    assert isinstance(lean.spec("b0").component, Step)
