"""Whatever a component hands to the engine: its own message fails at most, and nothing else.

Each method of each collector, and of the state, is handed each of many objects; some of them do
harm as soon as they are looked at.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import sparkstorm as ss
from sparkstorm.testing import FeederSpout


class Stopped(BaseException):
    """No Exception, so that few catch it."""


class Silent(Exception):
    """Cannot tell what it is."""

    def __str__(self) -> str:
        raise Silent

    __repr__ = __str__


_HOOKS = (
    *("__str__", "__repr__", "__eq__", "__hash__", "__bool__", "__len__", "__iter__", "__index__"),
    *("__int__", "__float__", "__reduce__", "__reduce_ex__", "__getstate__", "__format__"),
    *("__add__", "__radd__", "__lt__", "__gt__", "__contains__", "__getitem__", "__array__"),
)


def raising(hooks: tuple[str, ...], error: type[BaseException]) -> Any:
    """Return an object whose methods of these names raise."""

    def hook(*_: Any, **__: Any) -> Any:
        raise error("odd")

    methods: dict[str, Any] = {name: hook for name in hooks if name != "__class__"}
    if "__class__" in hooks:
        methods["__class__"] = property(hook)
    return type("Odd", (), methods)()


class Unreadable:
    """Can be pickled; what reads it ends in an exit."""

    def __reduce__(self) -> Any:
        return _leave, ()


def _leave() -> None:
    raise SystemExit("while it was read")


def endless() -> list[Any]:
    """Return a list that contains itself."""
    found: list[Any] = []
    found.append(found)
    return found


def deep() -> Any:
    """Return a tuple in a tuple in a tuple, and so on."""
    found: Any = ()
    for _ in range(20_000):
        found = (found,)
    return found


ERRORS = (ValueError, Silent, SystemExit, KeyboardInterrupt, RecursionError, Stopped)

OBJECTS: Mapping[str, Callable[[], Any]] = MappingProxyType(
    {
        "none": lambda: None,
        "true": lambda: True,
        "number": lambda: 7,
        "fraction": lambda: 7.5,
        "huge": lambda: 10**6000,
        "negative": lambda: -1,
        "nan": lambda: float("nan"),
        "numpy": lambda: np.float32(7),
        "numpy int": lambda: np.int64(-7),
        "array": lambda: np.arange(3),
        "text": lambda: "x",
        "surrogate": lambda: "\ud800",
        "bytes": lambda: b"\xff",
        "list": lambda: [1],
        "dict": lambda: {"a": {1, 2}},
        "endless": endless,
        "deep": deep,
        "generator": lambda: (n for n in range(3)),
        "lambda": lambda: lambda: None,
        "type": lambda: int,
        "error": lambda: ValueError("away"),
        "silent error": Silent,
        "exit": lambda: SystemExit(3),
        "interrupt": lambda: KeyboardInterrupt("no"),
        "group": lambda: ExceptionGroup("several", [ValueError(1), Silent()]),
        "unreadable": Unreadable,
        **{
            f"{error.__name__} of all": lambda error=error: raising(_HOOKS, error)  # type: ignore[misc]
            for error in (
                ValueError,
                Silent,
                SystemExit,
                KeyboardInterrupt,
                RecursionError,
                Stopped,
            )
        },
        "ValueError of class": lambda: raising(("__class__",), ValueError),
        "Stopped of class": lambda: raising(("__class__",), Stopped),
        "SystemExit of reduce": lambda: raising(("__reduce_ex__",), SystemExit),
        "Silent of reduce": lambda: raising(("__reduce_ex__",), Silent),
        "Stopped of reduce": lambda: raising(("__reduce_ex__",), Stopped),
        "Stopped of eq": lambda: raising(("__eq__",), Stopped),
    }
)
"""What may be handed over, by name."""

Call = Callable[[Any, ss.Tuple, Any], Any]
"""Hands an object to a method, of a collector or of a bolt: (bolt, tuple, object)."""

BOLT_CALLS: Mapping[str, Call] = MappingProxyType(
    {
        "emit value": lambda bolt, tup, odd: bolt.collector.emit([odd], anchors=tup),
        "emit values": lambda bolt, tup, odd: bolt.collector.emit(odd, anchors=tup),
        "emit typed": lambda bolt, tup, odd: bolt.collector.emit(
            [odd], anchors=tup, stream="typed"
        ),
        "emit key": lambda bolt, tup, odd: bolt.collector.emit([odd], anchors=tup, stream="keyed"),
        "emit stream": lambda bolt, tup, odd: bolt.collector.emit([1], anchors=tup, stream=odd),
        "emit anchors": lambda bolt, tup, odd: bolt.collector.emit([1], anchors=odd),
        "emit some anchors": lambda bolt, tup, odd: bolt.collector.emit([1], anchors=[tup, odd]),
        "emit unanchored": lambda bolt, tup, odd: bolt.collector.emit([odd]),
        "emit_direct task": lambda bolt, tup, odd: bolt.collector.emit_direct(
            odd, [1], anchors=tup, stream="direct"
        ),
        "emit_direct value": lambda bolt, tup, odd: bolt.collector.emit_direct(
            bolt.context.component_tasks("end")[0], [odd], anchors=tup, stream="direct"
        ),
        "ack": lambda bolt, tup, odd: bolt.collector.ack(odd),
        "fail": lambda bolt, tup, odd: bolt.collector.fail(odd),
        "fail why": lambda bolt, tup, odd: bolt.collector.fail(tup, odd),
        "reset_timeout": lambda bolt, tup, odd: bolt.collector.reset_timeout(odd),
        "report_error": lambda bolt, tup, odd: bolt.collector.report_error(odd),
        "count": lambda bolt, tup, odd: bolt.context.count(odd),
        "count amount": lambda bolt, tup, odd: bolt.context.count("odd", odd),
        "return": lambda bolt, tup, odd: odd,
    }
)

BASIC_CALLS: Mapping[str, Call] = MappingProxyType(
    {
        "emit value": lambda bolt, tup, odd: bolt.collector.emit([odd]),
        "emit values": lambda bolt, tup, odd: bolt.collector.emit(odd),
        "emit typed": lambda bolt, tup, odd: bolt.collector.emit([odd], stream="typed"),
        "emit key": lambda bolt, tup, odd: bolt.collector.emit([odd], stream="keyed"),
        "emit stream": lambda bolt, tup, odd: bolt.collector.emit([1], stream=odd),
        "emit_direct task": lambda bolt, tup, odd: bolt.collector.emit_direct(
            odd, [1], stream="direct"
        ),
        "reset_timeout": lambda bolt, tup, odd: bolt.collector.reset_timeout(odd),
        "report_error": lambda bolt, tup, odd: bolt.collector.report_error(odd),
        "return": lambda bolt, tup, odd: odd,
    }
)

STATE_CALLS: Mapping[str, Call] = MappingProxyType(
    {
        "put key": lambda bolt, tup, odd: bolt.state.put(odd, 1),
        "put key in tuple": lambda bolt, tup, odd: bolt.state.put(("a", odd), 1),
        "put value": lambda bolt, tup, odd: bolt.state.put("a", odd),
        "add": lambda bolt, tup, odd: bolt.state.add("n", odd),
        "add key": lambda bolt, tup, odd: bolt.state.add(odd),
        "get": lambda bolt, tup, odd: bolt.state.get(odd),
        "delete": lambda bolt, tup, odd: bolt.state.delete(odd),
        "items": lambda bolt, tup, odd: list(bolt.state.items(odd)) and None,
        "named": lambda bolt, tup, odd: bolt.state.named(odd).put(1, 1),
        "ttl": lambda bolt, tup, odd: bolt.state.named("short", ttl_secs=odd).put(1, 1),
        "ttl key": lambda bolt, tup, odd: bolt.state.named("long", ttl_secs=9).put(odd, 1),
        "tuples": lambda bolt, tup, odd: bolt.state.tuples(odd).keys() and None,
        "hold key": lambda bolt, tup, odd: bolt.state.tuples("held").add(odd, tup),
        "hold tuple": lambda bolt, tup, odd: bolt.state.tuples("held").add("a", odd),
        "hold value": lambda bolt, tup, odd: bolt.hold(tup, odd),
        "held of": lambda bolt, tup, odd: bolt.state.tuples("held").get(odd) and None,
        "pop": lambda bolt, tup, odd: bolt.state.tuples("other").pop(odd) and None,
        "held since": lambda bolt, tup, odd: bolt.state.tuples("held").held_since(odd) and None,
        "remove": lambda bolt, tup, odd: bolt.state.tuples("held").remove(odd),
    }
)

ALL_CALLS: Mapping[str, Call] = MappingProxyType({**BOLT_CALLS, **STATE_CALLS})

_OUTPUTS: Mapping[str, Any] = MappingProxyType(
    {
        "default": ("thing",),
        "typed": "n long",
        "keyed": ("key",),
        "direct": ss.Stream(("thing",), direct=True),
    }
)


class Handing(ss.Bolt):
    """Hands an odd object over, as each tuple says: which call, which object, or none."""

    outputs = _OUTPUTS

    def execute(self, tup: ss.Tuple) -> Any:
        result = ALL_CALLS[tup["call"]](self, tup, OBJECTS[tup["odd"]]()) if tup["call"] else None
        if tup["call"] not in ("fail why", "hold key", "hold value"):
            self.collector.ack(tup)
        return result


class HandingAsync(Handing):
    """The same as a coroutine."""

    async def execute(self, tup: ss.Tuple) -> Any:
        return super().execute(tup)


class HandingState(Handing, ss.StatefulBolt):
    """The same with a state, where it counts tuples; with the last one it acks what it holds."""

    def execute(self, tup: ss.Tuple) -> Any:
        self.state.add("tuples")
        if tup["thing"] == ["last"]:
            self.state.put("last", True)
        return super().execute(tup)

    def finish_batch(self) -> None:
        if self.state.get("last"):
            for tup in self.state.tuples("held").held_since(math.inf):
                self.collector.ack(tup)

    def hold(self, tup: ss.Tuple, odd: Any) -> None:
        """Hold a tuple whose value was changed in place."""
        tup["thing"].append(odd)
        self.state.tuples("held").add("a", tup)


class HandingBasic(ss.BasicBolt):
    """The same for a basic bolt."""

    outputs = _OUTPUTS

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> Any:
        if tup["call"]:
            return BASIC_CALLS[tup["call"]](Lent(collector), tup, OBJECTS[tup["odd"]]())
        return None


class HandingBasicAsync(HandingBasic):
    """The same as a coroutine."""

    async def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> Any:
        return super().execute(tup, collector)


class Lent:
    """Has a collector, as a bolt has."""

    def __init__(self, collector: ss.BasicCollector) -> None:
        self.collector = collector


class End(ss.BasicBolt):
    """Takes anything."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Do nothing."""


def wired(bolt: Any, concurrency: int = 1, **config: Any) -> tuple[FeederSpout, ss.Topology]:
    feeder = FeederSpout(["call", "odd", "thing"])
    builder = ss.TopologyBuilder()
    builder.set_spout("feeder", feeder)
    handing = builder.set_bolt("handing", bolt, concurrency=concurrency)
    handing.global_grouping("feeder")
    for name, value in config.items():
        handing.add_configuration(name, value)
    end = builder.set_bolt("end", End(), 2).shuffle_grouping("handing")
    end.shuffle_grouping("handing", stream="typed")
    end.fields_grouping("handing", ["key"], stream="keyed")
    end.direct_grouping("handing", stream="direct")
    return feeder, builder.create_topology()


def check(play: Any, feeder: FeederSpout, calls: Any) -> None:
    """Hand everything over, in two batches; each good message is acked, each odd one has ended."""
    odd = [(call, name) for call in calls for name in OBJECTS]
    for turn in range(2):
        for number, (call, name) in enumerate(odd):
            feeder.feed([call, name, []], msg_id=(turn, call, name))
            feeder.feed(["", "", []], msg_id=(turn, "good", number))
        play.settle()
    feeder.feed(["", "", ["last"]], msg_id="last")  # another batch, in which all that is held goes
    feeder.end()
    statistics = play.drain()
    good = {(turn, "good", number) for turn in range(2) for number in range(len(odd))}
    assert {*good, "last"} <= set(feeder.acked)
    ended = Counter([*feeder.acked, *feeder.failed])
    assert set(ended) == {*good, "last", *((n, *pair) for n in range(2) for pair in odd)}
    assert set(ended.values()) == {1}
    assert statistics.pending == 0
    assert {failure.reason for failure in feeder.failures} <= {"failed", "error"}


@pytest.mark.parametrize("call", BOLT_CALLS)
@pytest.mark.parametrize(
    ("bolt", "concurrency"),
    [(Handing, 1), (Handing, 3), (HandingAsync, 3)],
    ids=["one by one", "threads", "coroutines"],
)
def test_a_bolts_collector(run_locally: Any, bolt: Any, concurrency: int, call: str) -> None:
    """Each method of a bolt's collector, with each object."""
    feeder, topology = wired(bolt(), concurrency)
    with run_locally(topology) as play:
        check(play, feeder, [call])


@pytest.mark.parametrize("call", BASIC_CALLS)
@pytest.mark.parametrize("bolt", [HandingBasic, HandingBasicAsync])
def test_a_basic_bolts_collector(run_locally: Any, bolt: Any, call: str) -> None:
    """Each method of a basic bolt's collector, with each object."""
    feeder, topology = wired(bolt())
    with run_locally(topology) as play:
        check(play, feeder, [call])


@pytest.mark.parametrize("call", [*STATE_CALLS, *BOLT_CALLS])
@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
def test_a_state(run_locally: Any, backend: str, call: str) -> None:
    """Each method of a state, with each object; and what is in it is there in the next batch."""
    feeder, topology = wired(HandingState(), state_backend=backend)
    with run_locally(topology) as play:
        check(play, feeder, [call])
        assert play.runner.state("handing")["tuples"] > 2 * len(OBJECTS)


def test_everything_at_once(run_topology: Any) -> None:
    """All of it in a few batches, in one process and on Spark."""
    feeder, topology = wired(HandingState())
    with run_topology(topology) as play:
        check(play, feeder, ALL_CALLS)


SPOUT_CALLS: Mapping[str, Call] = MappingProxyType(
    {
        "emit value": lambda spout, name, odd: spout.collector.emit([odd], msg_id=name),
        "emit values": lambda spout, name, odd: spout.collector.emit(odd, msg_id=name),
        "emit typed": lambda spout, name, odd: spout.collector.emit(
            [odd], msg_id=name, stream="typed"
        ),
        "emit key": lambda spout, name, odd: spout.collector.emit(
            [odd], msg_id=name, stream="keyed"
        ),
        "emit stream": lambda spout, name, odd: spout.collector.emit([1], msg_id=name, stream=odd),
        "emit msg_id": lambda spout, name, odd: spout.collector.emit([1], msg_id=odd),
        "emit failing msg_id": lambda spout, name, odd: spout.collector.emit(
            ["x"], msg_id=odd, stream="typed"
        ),
        "emit untracked": lambda spout, name, odd: spout.collector.emit([odd]),
        "emit_direct": lambda spout, name, odd: spout.collector.emit_direct(
            odd, [1], msg_id=name, stream="direct"
        ),
        "report_error": lambda spout, name, odd: spout.collector.report_error(odd),
        "give_up": lambda spout, name, odd: spout.collector.give_up(name, odd),
        "give_up msg_id": lambda spout, name, odd: spout.collector.give_up(odd, spout.failure),
    }
)


class HandingSpout(ss.Spout):
    """Hands each object to one method, with a good message behind each; catches what it raises."""

    outputs = _OUTPUTS
    failure = ss.Failure(reason=ss.Reason.FAILED, message="no use")

    def __init__(self, call: str) -> None:
        self.call = call

    def open(self, config: ss.Config, context: ss.TaskContext, collector: Any) -> None:
        self.collector = collector
        self.left = list(OBJECTS)

    def next_tuple(self) -> None:
        if self.left:
            name = self.left.pop()
            with suppress(BaseException):
                call: Callable[..., Any] = SPOUT_CALLS[self.call]
                call(self, name, OBJECTS[name]())
            self.collector.emit([name], msg_id=("good", name))

    def fail(self, msg_id: Any, failure: ss.Failure) -> None:
        self.collector.give_up(msg_id, failure)

    def exhausted(self) -> bool:
        return not self.left


class OddRows(ss.PartitionedSpout):
    """Reads an object between two good messages, in one split for each."""

    outputs = ("thing",)

    def __init__(self, row: Callable[[Any], Any]) -> None:
        self.row = row
        self.left = list(OBJECTS)

    def plan(self, limit: int) -> list[ss.Split]:
        return [ss.Split(count=3, data={"odd": self.left.pop()})] if self.left else []

    def read(self, split: ss.Split) -> Any:
        yield ["before"]
        yield self.row(OBJECTS[split.data["odd"]]())
        yield ["after"]

    def exhausted(self) -> bool:
        return not self.left


def sent_on(spout: Any) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("spout", spout)
    end = builder.set_bolt("end", End(), 2).shuffle_grouping("spout")
    if isinstance(spout, HandingSpout):
        end.shuffle_grouping("spout", stream="typed")
        end.fields_grouping("spout", ["key"], stream="keyed")
        end.direct_grouping("spout", stream="direct")
    return builder.create_topology()


@pytest.mark.parametrize("call", SPOUT_CALLS)
def test_a_spouts_collector(run_locally: Any, call: str) -> None:
    """It refuses at once, so that the spout may catch it, or fails that message alone."""
    with run_locally(sent_on(HandingSpout(call))) as play:
        statistics = play.drain()
    assert statistics.acked >= len(OBJECTS)
    assert set(statistics.failures) <= {"error"}


@pytest.mark.parametrize(
    "row",
    [lambda odd: odd, lambda odd: [odd], lambda odd: ss.Unreadable(odd)],
    ids=["row", "value", "unreadable"],
)
def test_rows_of_a_partitioned_spout(run_locally: Any, row: Any) -> None:
    """The others of their split go on; what becomes of it has its dead letter."""
    with run_locally(sent_on(OddRows(row)), {"max_retries": 1, "retry_backoff_secs": 0}) as play:
        statistics = play.drain()
    assert statistics.acked >= 2 * len(OBJECTS)
    assert statistics.acked + statistics.given_up == 3 * len(OBJECTS)
    assert statistics.dead_letters == statistics.given_up


class OddReads(OddRows):
    """Raises what it is handed, if that can be raised."""

    def read(self, split: ss.Split) -> Any:
        raise OBJECTS[split.data["odd"]]()


def test_errors_of_a_read(run_locally: Any) -> None:
    """They fail the messages of their split, whatever they say of themselves."""
    spout = OddReads(lambda odd: odd)
    spout.left = ["none", "error", "silent error", "exit", "group"]
    with run_locally(sent_on(spout), {"max_retries": 1, "retry_backoff_secs": 0}) as play:
        statistics = play.drain()
    assert (statistics.acked, statistics.given_up) == (0, 3 * 5)


class FailsWithError(ss.Bolt):
    """Hands the exception to ``fail``, as users of Storm do."""

    def execute(self, tup: ss.Tuple) -> None:
        try:
            int(tup["call"])
        except ValueError as error:
            self.collector.fail(tup, error)


class MakesGenerators(ss.BasicBolt):
    """Returns a generator made elsewhere, which no look at ``execute`` finds."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> Any:
        return (value for value in tup)


@pytest.mark.parametrize(
    ("bolt", "reason", "message"),
    [
        (FailsWithError, "failed", "ValueError: invalid literal for int() with base 10: 'seven'"),
        (MakesGenerators, "error", "EmitError: execute returned a generator, which nobody runs"),
    ],
)
def test_a_failure_says_what_was_handed_over(
    run_topology: Any, bolt: Any, reason: str, message: str
) -> None:
    """An exception with its traceback; a generator, which would do nothing, with what to do."""
    feeder = FeederSpout(["call"])
    builder = ss.TopologyBuilder()
    builder.set_spout("feeder", feeder)
    builder.set_bolt("bolt", bolt()).shuffle_grouping("feeder")
    with run_topology(builder.create_topology()) as play:
        feeder.feed(["seven"], msg_id=1)
        play.settle()
    [failure] = feeder.failures
    assert failure.reason == reason
    assert failure.message.startswith(message)
    assert "Traceback (most recent call last)" in failure.traceback or bolt is MakesGenerators
