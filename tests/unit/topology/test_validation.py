"""The rules of a well-wired topology, each with what it says."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from sparkstorm import (
    BasicBolt,
    BasicCollector,
    PartitionedSpout,
    Split,
    Spout,
    StatefulBolt,
    Stream,
    TopologyBuilder,
    TopologyError,
    Tuple,
)
from sparkstorm.bolts import JoinBolt, TumblingWindow, Window, WindowBolt
from sparkstorm.config import COMPONENT_KEYS
from sparkstorm.streams import Outputs
from sparkstorm.topology.builder import BoltDeclarer
from sparkstorm.topology.grouping import Custom, FunctionGrouping
from sparkstorm.topology.validation import unpicklable_attribute

SRC = Path(__file__).parents[3] / "src"


class Lines(Spout):
    """A source of lines."""

    def __init__(self, outputs: Outputs = "line string", **attributes: object) -> None:
        self.outputs = outputs
        vars(self).update(attributes)

    def next_tuple(self) -> None:
        """Emit nothing."""


class Log(PartitionedSpout):
    """A partitioned source with two streams."""

    outputs: Outputs = "a"

    def __init__(self, outputs: Outputs) -> None:
        self.outputs = outputs

    def plan(self, limit: int) -> list[Split]:
        return []

    def read(self, split: Split) -> Iterable[Sequence[Any] | None]:
        return []


class Step(BasicBolt):
    """A step."""

    def __init__(self, outputs: Outputs = "word string", **attributes: object) -> None:
        self.outputs = outputs
        vars(self).update(attributes)

    def execute(self, tup: Tuple, collector: BasicCollector) -> None:
        """Emit nothing."""


class Flush(Step):
    """A step that hopes for the end of the batch."""

    def finish_batch(self) -> None:
        """Never called."""


class Yields(BasicBolt):
    """A step that hopes for somebody who reads what it yields."""

    outputs = "word string"

    def execute(self, tup: Tuple, collector: BasicCollector) -> Any:
        """Yield what it should emit."""
        yield [tup[0]]


class YieldsLater(BasicBolt):
    """The same, as one that waits."""

    async def execute(self, tup: Tuple, collector: BasicCollector) -> Any:
        """Yield what it should emit."""
        yield [tup[0]]


class PreparesLater(Step):
    """A step that nobody prepares."""

    async def prepare(self, *_: object) -> None:  # type: ignore[override]
        """Never awaited."""


class Count(StatefulBolt):
    """A step with state."""

    def execute(self, tup: Tuple) -> None:
        """Count nothing."""


class SlowCount(StatefulBolt):
    """A step with state that waits."""

    async def execute(self, tup: Tuple) -> None:
        """Count nothing."""


class Slotted(BasicBolt):
    """Keeps what cannot travel where no attribute shows it."""

    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __reduce__(self) -> Any:
        return Slotted, (self.lock,)

    def execute(self, tup: Tuple, collector: BasicCollector) -> None:
        """Emit nothing."""


Wire = Callable[[TopologyBuilder], object]


def faults(wire: Wire, *, outputs: Outputs = "line string, n long") -> list[str]:
    """The faults of a topology that has a spout ``lines`` and what is wired to it."""
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines(outputs))
    wire(builder)
    try:
        builder.create_topology()
    except TopologyError as error:
        return list(error.faults)
    return []


def windows(**attributes: object) -> WindowBolt:
    """Return a bolt with windows."""

    class Windows(WindowBolt):
        window = TumblingWindow(60)

        def execute_window(self, window: Window, collector: BasicCollector) -> None:
            """Emit nothing."""

    bolt = Windows()
    vars(bolt).update(attributes)
    return bolt


def joined(b: TopologyBuilder) -> BoltDeclarer:
    """Add a bolt that joins the words of ``a`` with lines."""
    b.set_bolt("a", Step("n long, word string")).shuffle_grouping("lines")
    join = JoinBolt("lines", ["line", "n"]).join("a", ["word", "n"]).select("line")
    return b.set_bolt("join", join, parallelism=2)


RULES: dict[str, tuple[Wire, str]] = {
    "a yield in execute": (
        lambda b: b.set_bolt("a", Yields()).shuffle_grouping("lines"),
        "component 'a': execute has a yield, so a call of it does nothing. Emit with "
        "collector.emit([…]) instead",
    ),
    "a yield in an async execute": (
        lambda b: b.set_bolt("a", YieldsLater()).shuffle_grouping("lines"),
        "component 'a': execute has a yield, so a call of it does nothing. Emit with "
        "collector.emit([…]) instead",
    ),
    "an async prepare": (
        lambda b: b.set_bolt("a", PreparesLater()).shuffle_grouping("lines"),
        "component 'a': prepare is async: only a bolt's execute may be",
    ),
    "a time that is not there": (
        lambda b: b.set_bolt("a", windows(timestamp_field="at")).shuffle_grouping("lines"),
        "bolt 'a': its timestamp_field names 'at', but the stream 'lines' has the fields line, n",
    ),
    "a key that is not there": (
        lambda b: b.set_bolt("a", windows(key_fields=["shop"])).shuffle_grouping("lines"),
        "bolt 'a': its key_fields names 'shop', but the stream 'lines' has the fields line, n",
    ),
    "windows torn apart": (
        lambda b: b.set_bolt("a", windows(key_fields=["n"]), 2).shuffle_grouping("lines"),
        "bolt 'a': it has 2 tasks and windows by n, but reads 'lines' by a grouping that spreads "
        "equal keys over tasks, so each window would get a part. Use fields_grouping('lines', "
        "['n'])",
    ),
    "windows by part of another key": (
        lambda b: b.set_bolt("a", windows(key_fields=["n"]), 2).partial_key_grouping("lines", "n"),
        "bolt 'a': it has 2 tasks and windows by n, but reads 'lines' by a grouping that spreads "
        "equal keys over tasks, so each window would get a part. Use fields_grouping('lines', "
        "['n'])",
    ),
    "a join of other streams": (
        lambda b: joined(b).fields_grouping("a", "n"),
        "bolt 'join': the joined streams and the subscriptions differ: see lines/default",
    ),
    "a join that misses": (
        lambda b: joined(b).fields_grouping("a", "word").fields_grouping("lines", "n"),
        "bolt 'join': it has 2 tasks, and its streams are not grouped alike, so tuples with the "
        "same key would miss each other. Use fields_grouping for each stream, by its key",
    ),
    "a join by a field that is not there": (
        lambda b: (
            b.set_bolt("a", Step()).shuffle_grouping("lines"),
            b.set_bolt("join", JoinBolt("lines", "line").join("a", "line").select("n"))
            .shuffle_grouping("lines")
            .shuffle_grouping("a"),
        ),
        "bolt 'join': it joins 'a' by 'line', but this stream has the fields word",
    ),
    "an id twice": (
        lambda b: [b.set_bolt("a", Step()).shuffle_grouping("lines") for _ in range(2)],
        "the id 'a' is used twice: every component needs its own",
    ),
    "no id": (
        lambda b: b.set_bolt("", Step()).shuffle_grouping("lines"),
        "a component or stream has an empty id",
    ),
    "a number for an id": (
        lambda b: b.set_bolt(5, Step()).shuffle_grouping("lines"),  # type: ignore[arg-type]
        "5 is not an id: it is of type int, not text",
    ),
    "a system id": (
        lambda b: b.set_bolt("__acker", Step()).shuffle_grouping("lines"),
        "'__acker' is reserved: ids that start with two underscores are the system's",
    ),
    "a path for an id": (
        lambda b: b.set_bolt("a/b", Step()).shuffle_grouping("lines"),
        "'a/b' is not an id: it contains path characters",
    ),
    "a folder for an id": (
        lambda b: b.set_bolt("..", Step()).shuffle_grouping("lines"),
        "'..' is not an id: it contains path characters",
    ),
    "a system stream": (
        lambda b: b.set_bolt("a", Step({"__tick": "x"})).shuffle_grouping("lines"),
        "'__tick' is reserved: ids that start with two underscores are the system's",
    ),
    "no parallelism": (
        lambda b: b.set_bolt("a", Step(), parallelism=0).shuffle_grouping("lines"),
        "component 'a' has parallelism 0: it needs a number, at least 1",
    ),
    "a text for a number": (
        lambda b: b.set_bolt("a", Step(), "2").shuffle_grouping("lines"),  # type: ignore[arg-type]
        "component 'a' has parallelism '2': it needs a number, at least 1",
    ),
    "no tasks": (
        lambda b: b.set_bolt("a", Step()).set_num_tasks(-1).shuffle_grouping("lines"),
        "component 'a' has parallelism -1: it needs a number, at least 1",
    ),
    "no concurrency": (
        lambda b: b.set_bolt("a", Step(), concurrency=0).shuffle_grouping("lines"),
        "component 'a' has concurrency 0: it needs a number, at least 1",
    ),
    "state with many writers": (
        lambda b: b.set_bolt("a", Count(), concurrency=2).shuffle_grouping("lines"),
        "component 'a' keeps state and has concurrency 2: state has one writer, use more tasks "
        "instead",
    ),
    "state that waits": (
        lambda b: b.set_bolt("a", SlowCount()).shuffle_grouping("lines"),
        "component 'a' keeps state and its execute is async: state has one writer, await in a "
        "bolt before it",
    ),
    "a class": (
        lambda b: b.set_bolt("a", Step).shuffle_grouping("lines"),  # type: ignore[arg-type]
        "component 'a' is the class Step: pass an instance of it",
    ),
    "no component": (
        lambda b: b.set_bolt("a", "Step").shuffle_grouping("lines"),  # type: ignore[arg-type]
        "component 'a' is a str: not a spout, not a bolt",
    ),
    "an unknown setting": (
        lambda b: b.set_bolt("a", Step()).add_configuration("colour", 1).all_grouping("lines"),
        f"component 'a' sets 'colour': a component may set {', '.join(sorted(COMPONENT_KEYS))} "
        f"only",
    ),
    "a bad setting": (
        lambda b: b.set_spout("a", Lines()).set_max_spout_pending(-5),
        "component 'a': setting 'max_spout_pending' has the value -5: Input should be greater "
        "than 0",
    ),
    "an attribute that cannot travel": (
        lambda b: b.set_bolt("a", Step(good=1, lock=threading.Lock())).all_grouping("lines"),
        "component 'a' cannot be sent to the workers: its attribute 'lock' cannot be pickled "
        "(cannot pickle '_thread.lock' object). Make what cannot be sent in open or prepare",
    ),
    "a component that cannot travel": (
        lambda b: b.set_bolt("a", Slotted()).shuffle_grouping("lines"),
        "component 'a' cannot be sent to the workers: it cannot be pickled (cannot pickle "
        "'_thread.lock' object). Make what cannot be sent in open or prepare",
    ),
    "nothing to read": (
        lambda b: b.set_bolt("a", Step()),
        "bolt 'a' subscribes to nothing: give it a grouping",
    ),
    "a spout that reads": (
        lambda b: b.set_bolt("a", Lines()).shuffle_grouping("lines"),  # type: ignore[arg-type]
        "spout 'a' subscribes to something: only bolts do",
    ),
    "an unknown source": (
        lambda b: b.set_bolt("a", Step()).shuffle_grouping("line"),
        "bolt 'a' subscribes to 'line', which does not exist: there are a, lines",
    ),
    "an unknown stream": (
        lambda b: b.set_bolt("a", Step()).shuffle_grouping("lines", "aside"),
        "bolt 'a' subscribes to stream 'aside' of 'lines', which declares default",
    ),
    "a stream of a component without any": (
        lambda b: (
            b.set_bolt("end", Step(())).shuffle_grouping("lines"),
            b.set_bolt("a", Step()).shuffle_grouping("end"),
        ),
        "bolt 'a' subscribes to stream 'default' of 'end', which declares no streams",
    ),
    "a direct stream read otherwise": (
        lambda b: (
            b.set_bolt("pick", Step(Stream(["x"], direct=True))).shuffle_grouping("lines"),
            b.set_bolt("a", Step()).shuffle_grouping("pick"),
        ),
        "bolt 'a' reads pick/default by shuffle, but the stream is declared direct: use "
        "direct_grouping",
    ),
    "another stream read directly": (
        lambda b: b.set_bolt("a", Step()).direct_grouping("lines"),
        "bolt 'a' reads lines/default by direct, but the stream is not declared direct: "
        "Stream(…, direct=True)",
    ),
    "a key of no fields": (
        lambda b: b.set_bolt("a", Step()).fields_grouping("lines", []),
        "bolt 'a' reads lines/default by fields(): name at least one field",
    ),
    "an unknown field": (
        lambda b: b.set_bolt("a", Step()).partial_key_grouping("lines", ["n", "lime"]),
        "bolt 'a' reads lines/default by partial_key(n, lime), but its fields are line, n",
    ),
    "a key of a stream without fields": (
        lambda b: (
            b.set_bolt("done", Step(Stream([]))).shuffle_grouping("lines"),
            b.set_bolt("a", Step()).fields_grouping("done", "x"),
        ),
        "bolt 'a' reads done/default by fields(x), but its fields are none",
    ),
    "a key without a hash": (
        lambda b: (
            b.set_bolt("tags", Step("tags array<string>")).shuffle_grouping("lines"),
            b.set_bolt("a", Step()).fields_grouping("tags", "tags"),
        ),
        "bolt 'a' reads tags/default by fields(tags), but field 'tags' has the type "
        "list<element: string>, which has no stable hash: group by text, numbers, booleans, "
        "bytes, dates or decimals",
    ),
    "a basic bolt with an end of the batch": (
        lambda b: b.set_bolt("a", Flush()).shuffle_grouping("lines"),
        "basic bolt 'a' defines finish_batch, which is never called: its inputs are acked one by "
        "one, when execute returns. To act at the end of a batch, subclass Bolt and ack there",
    ),
    "ticks for a spout": (
        lambda b: b.set_spout("a", Lines()).add_configuration("tick_tuple_freq_secs", 1),
        "spout 'a' sets tick_tuple_freq_secs: only bolts get tick tuples",
    ),
    "a partitioned spout with streams": (
        lambda b: b.set_spout("log", Log({"default": "a", "more": "b"})),
        "spout 'log' is partitioned: it has the default stream only",
    ),
    "a cycle": (
        lambda b: (
            b.set_bolt("a", Step()).shuffle_grouping("lines").shuffle_grouping("c"),
            b.set_bolt("b", Step()).shuffle_grouping("a"),
            b.set_bolt("c", Step()).shuffle_grouping("b"),
            b.set_bolt("behind", Step()).shuffle_grouping("c"),
        ),
        "the topology has a cycle through a → b → c → a: a tuple could go round for ever; break it",
    ),
    "a bolt that reads itself": (
        lambda b: b.set_bolt("a", Step()).shuffle_grouping("lines").all_grouping("a"),
        "the topology has a cycle through a → a: a tuple could go round for ever; break it",
    ),
    "outputs that are none": (
        lambda b: b.set_bolt("a", Step(None)).shuffle_grouping("lines"),  # type: ignore[arg-type]
        "component 'a': a stream is declared by text or a list of names, not by None",
    ),
    "outputs of an unknown type": (
        lambda b: b.set_bolt("a", Step({"x": "word strong"})).shuffle_grouping("lines"),
        "component 'a': unknown field type 'strong': use Spark's names",
    ),
}


@pytest.mark.parametrize(("wire", "message"), RULES.values(), ids=RULES)
def test_a_fault_is_explained(wire: Wire, message: str) -> None:
    """In one sentence that names it and says what to do; and it is the only one."""
    [found] = faults(wire)
    assert found == message or found.startswith(f"{message} (")


GOOD: dict[str, Wire] = {
    "windows by the key's own grouping": lambda b: b.set_bolt(
        "a", windows(key_fields=["n", "line"], timestamp_field="n"), 2
    ).fields_grouping("lines", "n"),
    "windows of one task": lambda b: b.set_bolt("a", windows(key_fields=["n"])).shuffle_grouping(
        "lines"
    ),
    "windows of the lowest task": lambda b: b.set_bolt(
        "a", windows(key_fields=["n"]), 2
    ).global_grouping("lines"),
    "a join by a part of the key": lambda b: (
        joined(b).fields_grouping("a", "n").fields_grouping("lines", "n")
    ),
}


@pytest.mark.parametrize("wire", GOOD.values(), ids=GOOD)
def test_what_keeps_keys_together_is_fine(wire: Wire) -> None:
    """A grouping by some of the key's fields does so too."""
    assert faults(wire) == []


def test_a_custom_grouping_may_be_a_function() -> None:
    """Of the values and the tasks; a class is no grouping yet."""
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines("line string"))
    reader = builder.set_bolt("a", Step(), parallelism=3)
    reader.custom_grouping("lines", lambda values, tasks: [tasks[len(values[0]) % len(tasks)]])
    [edge] = builder.create_topology().components["a"].subscriptions
    assert isinstance(edge.grouping, Custom)
    assert list(edge.grouping.grouping.choose_tasks(["four"], [5, 6, 7], 0)) == [6]
    with pytest.raises(TopologyError, match="takes an instance of a CustomGrouping, or a function"):
        reader.custom_grouping("lines", FunctionGrouping)  # type: ignore[arg-type]


def test_a_topology_needs_a_spout() -> None:
    """A bolt may read what does not exist; that is said too."""
    with pytest.raises(TopologyError, match="the topology has no spout: add one with set_spout"):
        TopologyBuilder().create_topology()


def test_all_faults_are_told_together() -> None:
    """Those of components and those between them."""
    found = faults(
        lambda b: (
            b.set_bolt("a", Step(), parallelism=0).shuffle_grouping("nowhere"),
            b.set_bolt("a", Step(lock=threading.Lock())),
        )
    )
    assert len(found) == 5
    assert [fault.split(" ")[0] for fault in found] == [
        "the",
        "component",
        "component",
        "bolt",
        "bolt",
    ]


def test_faults_that_only_follow_from_another_are_left_out() -> None:
    """A component without readable outputs is not missing: its readers are not at fault."""
    found = faults(
        lambda b: (
            b.set_bolt("a", Step("x strong")).shuffle_grouping("lines"),
            b.set_bolt("b", Step(), parallelism=0).shuffle_grouping("a"),
        )
    )
    assert [fault.split(":")[0] for fault in found] == [
        "component 'a'",
        "component 'b' has parallelism 0",
    ]


def test_every_grouping_of_a_good_topology_is_fine() -> None:
    """Typed and untyped keys, direct streams, several subscriptions."""
    assert faults(
        lambda b: (
            b.set_bolt("a", Step(["k", "v"])).fields_grouping("lines", ["line", "n"]),
            b.set_bolt("b", Step(Stream("k", direct=True))).partial_key_grouping("a", "k"),
            b.set_bolt("c", Step(())).direct_grouping("b").all_grouping("a").global_grouping("b"),
        )
    ) == ["bolt 'c' reads b/default by global, but the stream is declared direct: use "
          "direct_grouping"]  # fmt: skip


def test_what_is_not_imported_can_travel() -> None:
    """Functions without a name, and classes of the program itself."""

    class Local(Step):
        """Known to this function alone."""

    assert faults(lambda b: b.set_bolt("a", Local(f=lambda x: x + 1)).all_grouping("lines")) == []


@pytest.mark.process
def test_classes_of_a_script_can_travel() -> None:
    """A topology may be defined in the file that is run."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import sparkstorm as ss\n"
        "class Lines(ss.Spout):\n"
        "    outputs = 'line'\n"
        "    def next_tuple(self): pass\n"
        "builder = ss.TopologyBuilder()\n"
        "builder.set_spout('lines', Lines())\n"
        "print(builder.create_topology())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(SRC)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "Topology(lines)\n"


def test_the_attribute_that_cannot_travel_is_found() -> None:
    """Or none, if all can; an object without attributes has none to name."""
    assert unpicklable_attribute(Step(a=1)) is None
    assert unpicklable_attribute(Step(a=1, b=[threading.Lock()])) == (
        "b",
        "cannot pickle '_thread.lock' object",
    )
    assert unpicklable_attribute(threading.Lock()) == ("", "cannot pickle '_thread.lock' object")
