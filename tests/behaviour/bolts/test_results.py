"""Work that a method returns instead of doing it, and values that are no row: never in silence."""

import asyncio
import collections
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import Row

import sparkstorm as ss
from sparkstorm.bolts import BulkWriterBolt, CountWindow, Window, WindowBolt
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.dead_letters import DeadLetter, LetterStore
from sparkstorm.errors import ComponentError
from sparkstorm.spouts import IteratorSpout


def later() -> Iterator[int]:
    """Return work as a generator: what a decorator may hide from the builder."""
    return (n for n in range(3))


async def awaited() -> None:
    """Return work as a coroutine."""


class Total(WindowBolt):
    """Returns from its window instead of emitting."""

    outputs = "x string, y string"
    window = CountWindow(1)

    def __init__(self, result: Any) -> None:
        self.result = result

    def execute_window(self, window: Window, collector: ss.BasicCollector) -> Any:
        return self.result()


class Writes(BulkWriterBolt):
    """Returns the work of its write."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def write(self, tuples: Any) -> Any:
        return self.result()


class Executes(ss.BasicBolt):
    """Returns from its execute instead of emitting."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> Any:
        return self.result()


class Prepares(Executes):
    """Returns the work of its preparation."""

    def prepare(self, config: ss.Config, context: ss.TaskContext) -> Any:
        return self.result()

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Do nothing."""


def wired(bolt: Any, spout: Any = None) -> ss.Topology:
    """Build a topology of a bolt."""
    builder = ss.TopologyBuilder()
    builder.set_spout("rows", spout or IteratorSpout(["row"], "x string"))
    builder.set_bolt("bolt", bolt).shuffle_grouping("rows")
    return builder.create_topology()


def letters_of(run_locally: Any, topology: ss.Topology) -> list[DeadLetter]:
    """Run a topology to its end and return the dead letters."""
    files = MemoryFiles()
    with run_locally(topology, {"max_retries": 3, "retry_backoff_secs": 0}, files=files) as play:
        play.drain()
    return list(LetterStore(files).letters())


@pytest.mark.parametrize(
    ("bolt", "result", "message"),
    [
        (Executes, later, "execute returned a generator, which nobody runs"),
        (Executes, awaited, "execute returned a coroutine, which nobody awaits"),
        (Executes, list, "execute returned [], which nobody uses"),
        (Total, later, "execute_window returned a generator, which nobody runs"),
        (Total, awaited, "execute_window returned a coroutine, which nobody awaits"),
        (Total, list, "execute_window returned [], which nobody uses"),
        (Writes, later, "write returned a generator, which nobody runs"),
        (Writes, awaited, "write returned a coroutine, which nobody awaits"),
    ],
)
def test_returned_work_is_a_dead_letter_at_once(
    run_locally: Any, bolt: Any, result: Any, message: str
) -> None:
    """Nothing was done, so nothing may be acked; another try would do as little."""
    (letter,) = letters_of(run_locally, wired(bolt(result)))
    assert letter.failure.message.startswith(f"EmitError: {message}")
    assert letter.attempts == 1


def test_a_result_that_is_no_work_does_no_harm_where_nothing_is_emitted(run_locally: Any) -> None:
    """Many writers return a count."""
    with run_locally(wired(Writes(lambda: 7))) as play:
        assert play.drain().acked == 1
    with run_locally(wired(Prepares(lambda: 7))) as play:
        assert play.drain().acked == 1


@pytest.mark.parametrize("result", [later, awaited])
def test_a_preparation_that_was_not_done_stops_the_run(run_locally: Any, result: Any) -> None:
    """No tuple may meet a bolt that is not ready."""
    with (
        pytest.raises(ComponentError, match=r"bolt 'bolt' could not be prepared: .*returned a"),
        run_locally(wired(Prepares(result))) as play,
    ):
        play.drain()


class Source(ss.Spout):
    """Emits a message and returns the work of one of its methods."""

    outputs = "x string"

    def __init__(self, method: str, result: Any) -> None:
        self.left = ["bad" if method == "fail" else "good"]
        setattr(self, method, lambda *_: result())

    def open(self, config: ss.Config, context: ss.TaskContext, collector: Any) -> None:
        self.collector = collector

    def next_tuple(self) -> None:
        if self.left:
            self.collector.emit([self.left.pop()], msg_id=1)

    def fail(self, msg_id: Any, failure: Any) -> None:
        """Do nothing."""


class Picky(ss.BasicBolt):
    """Fails what is bad."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["x"] == "bad":
            raise ValueError("bad")


@pytest.mark.parametrize("method", ["open", "next_tuple", "ack", "fail"])
@pytest.mark.parametrize("result", [later, awaited])
def test_a_spout_that_returns_its_work_stops_the_run(
    run_locally: Any, method: str, result: Any
) -> None:
    """A source would be left without its acks, in silence."""
    with (
        pytest.raises(ComponentError, match=f"{method} returned a (generator|coroutine), which"),
        run_locally(wired(Picky(), Source(method, result))) as play,
    ):
        play.drain()


class Rows(ss.PartitionedSpout):
    """Reads one row, and may return the work of a method."""

    outputs = "x string, y string"
    planned = False

    def __init__(self, key: str, **methods: Any) -> None:
        self.key = key
        vars(self).update({name: lambda *_, work=work: work() for name, work in methods.items()})

    def plan(self, limit: int) -> list[ss.Split]:
        if self.planned:
            return []
        self.planned = True
        return [ss.Split(count=1)]

    def read(self, split: ss.Split) -> Iterator[Any]:
        yield ROWS[self.key][0]()

    def exhausted(self) -> bool:
        return self.planned


@pytest.mark.parametrize("method", ["open", "ack"])
def test_a_partitioned_spout_that_returns_its_work_stops_the_run(
    run_locally: Any, method: str
) -> None:
    """As one in the driver."""
    with (
        pytest.raises(ComponentError, match=f"{method} returned a generator, which nobody runs"),
        run_locally(wired(Picky(), Rows("list", **{method: later}))) as play,
    ):
        play.drain()


Pair = collections.namedtuple("Pair", "x y")  # noqa: PYI024 - as users write it

GOOD = ("1", "2")
BAD = None

ROWS: dict[str, tuple[Any, tuple[str, str] | None]] = {
    "list": (lambda: ["1", "2"], GOOD),
    "tuple": (lambda: ("1", "2"), GOOD),
    "named tuple": (lambda: Pair("1", "2"), GOOD),
    "Spark's row": (lambda: Row(x="1", y="2"), GOOD),
    "dict": (lambda: {"x": "1", "y": "2"}, GOOD),
    "dict in another order": (lambda: {"y": "2", "x": "1"}, GOOD),
    "ordered dict": (lambda: collections.OrderedDict(y="2", x="1"), GOOD),
    "deque": (lambda: collections.deque(["1", "2"]), GOOD),
    "user's list": (lambda: collections.UserList(["1", "2"]), GOOD),
    "values of a dict": (lambda: {"x": "1", "y": "2"}.values(), GOOD),
    "array": (lambda: np.array(["1", "2"]), GOOD),
    "series": (lambda: pd.Series(["1", "2"]), GOOD),
    "dict with a key too many": (lambda: {"x": "1", "y": "2", "z": "3"}, BAD),
    "dict with a key too few": (lambda: {"x": "1"}, BAD),
    "dict with other keys": (lambda: {"x": "1", "z": "2"}, BAD),
    "text": (lambda: "ab", BAD),
    "user's text": (lambda: collections.UserString("ab"), BAD),
    "bytes": (lambda: b"ab", BAD),
    "bytearray": (lambda: bytearray(b"ab"), BAD),
    "memory": (lambda: memoryview(b"ab"), BAD),
    "set": (lambda: {"a", "b"}, BAD),
    "keys of a dict": (lambda: {"x": 1, "y": 2}.keys(), BAD),
    "number": (lambda: 5, BAD),
    "generator": (lambda: (c for c in "ab"), BAD),
    "iterator": (lambda: iter("ab"), BAD),
    "array of two dimensions": (lambda: np.array([["1", "2"], ["3", "4"]]), BAD),
    "array of no dimension": (lambda: np.array("ab"), BAD),
    "table": (lambda: pd.DataFrame({"x": ["1"], "y": ["2"]}), BAD),
    "class": (lambda: list, BAD),
    "error": (lambda: ValueError("ab"), BAD),
}
"""Values that users emit for the two fields x and y, and the values that arrive."""


class EmitsBasic(ss.BasicBolt):
    """Emits through the collector of basic bolts."""

    outputs = "x string, y string"

    def __init__(self, key: str) -> None:
        self.key = key

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit(ROWS[self.key][0]())


class EmitsAnchored(ss.Bolt):
    """Emits through the collector of bolts."""

    outputs = "x string, y string"

    def __init__(self, key: str) -> None:
        self.key = key

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.emit(ROWS[self.key][0](), anchors=tup)
        self.collector.ack(tup)


class EmitsLater(EmitsBasic):
    """Emits through a recording."""

    async def execute(  # type: ignore[override]
        self, tup: ss.Tuple, collector: ss.BasicCollector
    ) -> None:
        await asyncio.sleep(0)
        collector.emit(ROWS[self.key][0]())


class EmitsWindows(WindowBolt):
    """Emits through the collector of windows."""

    outputs = "x string, y string"
    window = CountWindow(1)

    def __init__(self, key: str) -> None:
        self.key = key

    def execute_window(self, window: Window, collector: ss.BasicCollector) -> None:
        collector.emit(ROWS[self.key][0]())


@pytest.mark.parametrize("key", ROWS)
@pytest.mark.parametrize("bolt", [EmitsBasic, EmitsAnchored, EmitsLater, EmitsWindows])
def test_only_a_row_is_emitted(run_locally: Any, bolt: Any, key: str) -> None:
    """A mapping goes by the names of the fields; anything else fails at once, with its type."""
    files = MemoryFiles()
    with run_locally(wired(bolt(key)), {"retry_backoff_secs": 0}, files=files) as play:
        play.drain()
        emitted = play.emitted("bolt")
    letters = list(LetterStore(files).letters())
    if ROWS[key][1] is not None:
        assert (emitted, letters) == ([ROWS[key][1]], [])
        return
    assert emitted == []
    (letter,) = letters
    assert letter.attempts == 1
    assert letter.failure.message.startswith("EmitError: stream 'bolt/default' ")


@pytest.mark.parametrize("key", ROWS)
def test_only_a_row_is_read(run_locally: Any, key: str) -> None:
    """Executors look at rows as collectors do."""
    files = MemoryFiles()
    with run_locally(wired(Picky(), Rows(key)), files=files) as play:
        play.drain()
        emitted = play.emitted("rows")
    letters = list(LetterStore(files).letters())
    if ROWS[key][1] is not None:
        assert (emitted, letters) == ([ROWS[key][1]], [])
        return
    assert emitted == []
    (letter,) = letters
    assert letter.attempts == 1
    assert letter.failure.message.startswith("stream 'default' ")


class Hears(Source):
    """Emits what is no row, then the error that it hears."""

    outputs = "x string, y string"

    def __init__(self, key: str) -> None:
        self.left = [key]

    def next_tuple(self) -> None:
        if self.left:
            try:
                self.collector.emit(ROWS[self.left.pop()][0](), msg_id=1)
            except ss.EmitError as error:
                self.collector.emit([str(error), ""], msg_id=1)


@pytest.mark.parametrize("key", [key for key, row in ROWS.items() if row[1] is None])
def test_a_spout_hears_at_once_that_its_emit_is_no_row(run_locally: Any, key: str) -> None:
    """The call of emit raises."""
    with run_locally(wired(Picky(), Hears(key))) as play:
        play.settle()
        ((heard, _),) = play.emitted("rows")
    assert heard.startswith("stream 'rows/default' ")
