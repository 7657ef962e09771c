"""Methods with yield or async are refused when the topology is built: a call would do nothing."""

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.bolts import BulkWriterBolt, CountWindow, WindowBolt
from sparkstorm.errors import ConfigError, TopologyError
from sparkstorm.spouts import IteratorSpout, ReplayingSpout
from sparkstorm.testing import FixedSpout


def yields(*_: Any) -> Iterator[int]:
    """Return a generator."""
    yield 1


async def waits(*_: Any) -> None:
    """Return a coroutine."""


async def yields_later(*_: Any) -> AsyncIterator[int]:
    """Return an async generator."""
    yield 1


class Yielding:
    """An object that is called like a function."""

    def __call__(self, *_: Any) -> Iterator[int]:
        yield 1


class Basic(ss.BasicBolt):
    """A basic bolt."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Do nothing."""


class Plain(ss.Bolt):
    """A bolt."""

    def execute(self, tup: ss.Tuple) -> None:
        """Do nothing."""


class Stateful(ss.StatefulBolt):
    """A bolt with state."""

    def execute(self, tup: ss.Tuple) -> None:
        """Do nothing."""


class Windows(WindowBolt):
    """A bolt of windows."""

    window = CountWindow(1)

    def execute_window(self, window: Any, collector: ss.BasicCollector) -> None:
        """Do nothing."""


class Writer(BulkWriterBolt):
    """A bolt that writes."""

    def write(self, tuples: Any) -> None:
        """Do nothing."""


class Committer(ss.CommitterBolt):
    """A committer."""

    def commit(self, transaction: Any, staged: Any) -> None:
        """Do nothing."""


class Hosted(ss.Spout):
    """A spout in the driver."""

    outputs = "x string"

    def next_tuple(self) -> None:
        """Do nothing."""


class Replaying(ReplayingSpout):
    """A spout that keeps its messages."""

    outputs = "x string"


class Partitioned(ss.PartitionedSpout):
    """A spout read by executors."""

    outputs = "x string"

    def plan(self, limit: int) -> list[ss.Split]:
        return []

    def read(self, split: ss.Split) -> Iterator[list[str]]:
        yield ["x"]


METHODS: dict[type, str] = {
    Basic: "prepare execute cleanup",
    Plain: "prepare execute finish_batch cleanup",
    Stateful: "init_state execute",
    Windows: "execute execute_window finish_batch",
    Writer: "write prepare",
    Committer: "stage commit connect disconnect",
    Hosted: "open close activate deactivate next_tuple ack fail exhausted",
    Replaying: "next_message next_tuple",
    Partitioned: "open close plan read reads merge origins msg_id ack fail give_up partition "
    "partitions pause resume snapshot restore exhausted",
}
EVERY = [(kind, name) for kind, names in METHODS.items() for name in names.split()]

MAY_WAIT = {(kind, "execute") for kind in (Basic, Plain)}
"""Stateful bolts are refused by a rule of their own."""

MAY_YIELD = {(Partitioned, name) for name in ("plan", "read", "merge", "origins", "partitions")}


def faults_of(component: Any) -> str:
    """Return all that is wrong with a component, as one text."""
    builder = ss.TopologyBuilder()
    if isinstance(component, ss.Spout | ss.PartitionedSpout):
        builder.set_spout("it", component)
    else:
        builder.set_spout("rows", FixedSpout([["x"]], outputs="x string"))
        builder.set_bolt("it", component).shuffle_grouping("rows")
    try:
        builder.create_topology()
    except TopologyError as error:
        return str(error)
    return ""


def with_method(kind: type, name: str, method: object) -> Any:
    """Make an instance of a subclass with another method."""
    return type("Mine", (kind,), {name: method})()


@pytest.mark.parametrize(("kind", "name"), EVERY)
@pytest.mark.parametrize("method", [yields, yields_later])
def test_a_yield_is_refused(kind: type, name: str, method: Callable[..., object]) -> None:
    """Unless the engine iterates over the result."""
    faults = faults_of(with_method(kind, name, method))
    if method is yields and (kind, name) in MAY_YIELD:
        assert faults == ""
    else:
        assert f"component 'it': {name} has a yield, so a call of it does nothing." in faults


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_async_is_refused(kind: type, name: str) -> None:
    """Unless the engine awaits the result."""
    faults = faults_of(with_method(kind, name, waits))
    if (kind, name) in MAY_WAIT:
        assert faults == ""
    else:
        assert "is async" in faults


@pytest.mark.parametrize(
    "method",
    [
        staticmethod(yields),
        classmethod(yields),
        functools.partial(yields, 1),
        functools.partialmethod(yields, 1),
        Yielding(),
        lambda self, tup, collector: (yield 1),
    ],
    ids=["static", "class", "partial", "partialmethod", "object", "lambda"],
)
def test_a_yield_is_found_behind_a_wrapper(method: object) -> None:
    """Python calls the function inside."""
    assert "execute has a yield" in faults_of(with_method(Basic, "execute", method))


def test_a_yield_is_found_in_an_attribute_of_the_instance() -> None:
    """Some set methods there."""
    bolt: Any = Basic()
    bolt.execute = yields
    assert "execute has a yield" in faults_of(bolt)


def test_a_decorator_may_turn_a_generator_into_a_method_that_emits() -> None:
    """The method that is called has no yield, whatever it wraps."""

    def emitting(method: Any) -> Any:
        @functools.wraps(method)
        def execute(self: Any, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
            for values in method(self, tup):
                collector.emit(values)

        return execute

    assert faults_of(with_method(Basic, "execute", emitting(yields))) == ""


def test_a_property_is_not_called_when_the_topology_is_built() -> None:
    """It may not be ready before the bolt is prepared."""

    def refuse(_: object) -> None:
        raise AssertionError("called")

    assert faults_of(with_method(Basic, "cleanup", property(refuse))) == ""


def test_methods_of_the_users_own_are_theirs() -> None:
    """A helper may be a generator."""
    assert faults_of(with_method(Basic, "words", yields)) == ""


class Later(ss.CustomGrouping):
    """A grouping that waits."""

    async def choose_tasks(  # type: ignore[override]
        self, values: Any, tasks: Any, sequence: int
    ) -> Any:
        return tasks


def grouped(grouping: Any) -> None:
    """Build a topology with a grouping of the user's own."""
    builder = ss.TopologyBuilder()
    builder.set_spout("rows", FixedSpout([["x"]], outputs="x string"))
    builder.set_bolt("it", Basic()).custom_grouping("rows", grouping)
    builder.create_topology()


@pytest.mark.parametrize("grouping", [waits, yields_later, functools.partial(waits), Later()])
def test_an_async_grouping_is_refused(grouping: Any) -> None:
    """Nobody would await the tasks."""
    with pytest.raises(TopologyError, match=r"bolt 'it': (custom_grouping takes .*await|.*async)"):
        grouped(grouping)


@pytest.mark.parametrize("items", [waits, yields_later])
def test_async_items_are_refused(items: Any) -> None:
    """A function of them may be a generator."""
    with pytest.raises(ConfigError, match="items is an async function, which nobody awaits"):
        IteratorSpout(items)
    assert faults_of(IteratorSpout(yields)) == ""


def test_an_iterator_of_items_is_refused() -> None:
    """It could not be sent, and a second task would find nothing."""
    with pytest.raises(ConfigError, match="items is a generator, which can be gone through once"):
        IteratorSpout(yields())


def missing(self: Any) -> None:
    """Lack every argument."""


def demanding(self: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> None:
    """Ask for more than anyone gives."""


def anything(self: Any, *args: Any, **named: Any) -> None:
    """Take every call."""


WITH_ARGUMENTS = {
    Basic: "prepare execute",
    Plain: "prepare execute",
    Stateful: "init_state execute",
    Windows: "execute_window",
    Writer: "write",
    Committer: "stage commit connect",
    Hosted: "open ack fail",
    Partitioned: "open plan read ack fail",
}


@pytest.mark.parametrize("method", [missing, demanding])
@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind, names in WITH_ARGUMENTS.items() for name in names.split()],
)
def test_a_method_with_other_parameters_is_refused(kind: type, name: str, method: Any) -> None:
    """The fault says what the method takes, and what it is called with."""
    faults = faults_of(with_method(kind, name, method))
    assert f"component 'it': {name} takes (" in faults
    assert "but is called with (" in faults


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_a_method_that_takes_anything_is_allowed(kind: type, name: str) -> None:
    """Decorators and stand-ins often take any arguments."""
    assert faults_of(with_method(kind, name, anything)) == ""


def test_the_collector_that_a_basic_bolt_forgets_is_named() -> None:
    """The commonest slip: the parameters of the other kind of bolt."""
    basic = with_method(Basic, "execute", lambda self, tup: None)
    assert "execute takes (tup), but is called with (tup, collector)" in faults_of(basic)
    plain = with_method(Plain, "execute", lambda self, tup, collector: None)
    assert "execute takes (tup, collector), but is called with (tup)" in faults_of(plain)


def test_a_decorator_may_add_arguments() -> None:
    """A wrapper counts, not the function that it wraps and calls with more arguments."""

    def with_lookup(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def wrapper(self: Any, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
            function(self, tup, collector, {})

        return wrapper

    @with_lookup
    def execute(self: Any, tup: Any, collector: Any, lookup: Any) -> None:
        """Use the lookup."""

    assert faults_of(with_method(Basic, "execute", execute)) == ""


@pytest.mark.parametrize("kind", [staticmethod, functools.partialmethod])
def test_static_methods_and_bound_arguments_count_right(kind: Any) -> None:
    """The engine calls what the instance shows."""
    assert faults_of(with_method(Basic, "execute", kind(lambda *given: None))) == ""


def test_a_custom_grouping_with_other_parameters_is_refused() -> None:
    """Groupings are called by the engine, too."""

    class Odd(ss.CustomGrouping):
        def choose_tasks(self, task: int) -> list[int]:  # type: ignore[override]
            return [task]

    builder = ss.TopologyBuilder()
    builder.set_spout("rows", FixedSpout([["x"]], outputs="x string"))
    builder.set_bolt("it", Basic()).custom_grouping("rows", Odd())
    with pytest.raises(TopologyError, match="choose_tasks takes"):
        builder.create_topology()
