"""The rules of a well-wired topology, one function each; all faults are reported together."""

import inspect
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

import cloudpickle
import pyarrow as pa

from sparkstorm.components.bolt import AnyBolt, BasicBolt
from sparkstorm.components.committer import CommitterBolt
from sparkstorm.components.spout import PartitionedSpout, Spout
from sparkstorm.config import COMPONENT_KEYS, Config
from sparkstorm.errors import ConfigError
from sparkstorm.streams import DEFAULT_STREAM
from sparkstorm.topology.graph import ComponentSpec
from sparkstorm.topology.grouping import (
    Custom,
    Direct,
    FieldsGrouping,
    Grouping,
    PartialKey,
    describe,
)
from sparkstorm.topology.methods import lazy_methods, misfit_methods
from sparkstorm.topology.wiring import wiring_of

__all__ = ["faults_of", "unpicklable_attribute"]

_Specs = Sequence[ComponentSpec]


def faults_of(specs: _Specs, *, complete: bool = True) -> list[str]:
    """Return a sentence for each fault; [] for a good topology.

    ``complete`` is False if some component could not be read at all. The rules about references are
    then left out: they would only repeat the fault.
    """
    rules = _LOCAL_RULES + (_GRAPH_RULES if complete else ())
    return [fault for rule in rules for fault in rule(specs)]


def _ids(specs: _Specs) -> Iterator[str]:
    seen: set[str] = set()
    for spec in specs:
        if spec.id in seen:
            yield f"the id {spec.id!r} is used twice: every component needs its own"
        seen.add(spec.id)
        names: tuple[object, ...] = (spec.id, *spec.streams)
        for name in names:
            if not isinstance(name, str):
                yield f"{name!r} is not an id: it is of type {type(name).__name__}, not text"
            elif not name:
                yield "a component or stream has an empty id"
            elif name.startswith("__"):
                yield f"{name!r} is reserved: ids that start with two underscores are the system's"
            elif any(char in name for char in "/\\\0\n") or name in (".", ".."):
                yield f"{name!r} is not an id: it contains path characters"


def _numbers(specs: _Specs) -> Iterator[str]:
    for spec in specs:
        numbers: dict[str, object] = {
            "parallelism": spec.parallelism,
            "concurrency": spec.concurrency,
        }
        for name, value in numbers.items():
            if not isinstance(value, int) or value < 1:
                yield f"component {spec.id!r} has {name} {value!r}: it needs a number, at least 1"
        if spec.is_stateful and spec.concurrency != 1:
            yield (
                f"component {spec.id!r} keeps state and has concurrency {spec.concurrency}: "
                f"state has one writer, use more tasks instead"
            )
        execute = getattr(spec.component, "execute", None)
        if spec.is_stateful and inspect.iscoroutinefunction(execute):
            yield (
                f"component {spec.id!r} keeps state and its execute is async: state has one "
                f"writer, await in a bolt before it"
            )


def _kinds(specs: _Specs) -> Iterator[str]:
    for spec in specs:
        component = spec.component
        if isinstance(component, type):
            yield f"component {spec.id!r} is the class {component.__name__}: pass an instance of it"
        elif not isinstance(component, Spout | PartitionedSpout | AnyBolt):
            yield f"component {spec.id!r} is a {type(component).__name__}: not a spout, not a bolt"
        elif isinstance(component, BasicBolt) and hasattr(component, "finish_batch"):
            yield (
                f"basic bolt {spec.id!r} defines finish_batch, which is never called: its inputs "
                f"are acked one by one, when execute returns. To act at the end of a batch, "
                f"subclass Bolt and ack there"
            )


def _methods(specs: _Specs) -> Iterator[str]:
    for spec in specs:
        for fault in _faults_of_methods(spec.component):
            yield f"component {spec.id!r}: {fault}"
        for edge in spec.subscriptions:
            if isinstance(edge.grouping, Custom):
                for fault in _faults_of_methods(edge.grouping.grouping):
                    yield f"bolt {spec.id!r}: {fault}"


def _faults_of_methods(given: object) -> Iterator[str]:
    yield from lazy_methods(given)
    yield from misfit_methods(given)


def _committers(specs: _Specs) -> Iterator[str]:
    committers = {spec.id for spec in specs if isinstance(spec.component, CommitterBolt)}
    for spec in specs:
        if spec.id in committers and type(spec.component).outputs != CommitterBolt.outputs:
            yield f"bolt {spec.id!r} is a committer and declares outputs: it has none of its own"
        for edge in spec.subscriptions:
            if edge.source in committers:
                yield (
                    f"bolt {spec.id!r} subscribes to {edge.source!r}, which is a committer: what "
                    f"it stages goes to the driver, nobody else can read it"
                )


def _settings(specs: _Specs) -> Iterator[str]:
    for spec in specs:
        for key in spec.settings:
            if key not in COMPONENT_KEYS:
                yield (
                    f"component {spec.id!r} sets {key!r}: a component may set "
                    f"{', '.join(sorted(COMPONENT_KEYS))} only"
                )
        if spec.is_spout and "tick_tuple_freq_secs" in spec.settings:
            yield f"spout {spec.id!r} sets tick_tuple_freq_secs: only bolts get tick tuples"
        try:
            Config(**{key: spec.settings[key] for key in COMPONENT_KEYS & set(spec.settings)})
        except ConfigError as error:
            yield f"component {spec.id!r}: {error}"


def _picklable(specs: _Specs) -> Iterator[str]:
    for spec in specs:
        fault = unpicklable_attribute(spec.component)
        if fault is not None:
            name, why = fault
            what = f"its attribute {name!r}" if name else "it"
            yield (
                f"component {spec.id!r} cannot be sent to the workers: {what} cannot be pickled "
                f"({why}). Make what cannot be sent in open or prepare"
            )


def _sources(specs: _Specs) -> Iterator[str]:
    if not any(isinstance(spec.component, Spout | PartitionedSpout) for spec in specs):
        yield "the topology has no spout: add one with set_spout"
    for spec in specs:
        if isinstance(spec.component, AnyBolt) and not spec.subscriptions:
            yield f"bolt {spec.id!r} subscribes to nothing: give it a grouping"
        if spec.is_spout and spec.subscriptions:
            yield f"spout {spec.id!r} subscribes to something: only bolts do"


def _feedback(specs: _Specs) -> Iterator[str]:
    bolts = [spec for spec in specs if isinstance(spec.component, AnyBolt)]
    for spec in specs:
        if isinstance(spec.component, PartitionedSpout):
            for bolt in bolts:
                for place in getattr(bolt.component, "writes_to", ()):
                    if spec.component.reads(place):
                        yield (
                            f"spout {spec.id!r} would read the output of bolt {bolt.id!r}, "
                            f"{place}, and the topology would feed on itself: exclude this place "
                            f"from the spout's source"
                        )


def _references(specs: _Specs) -> Iterator[str]:
    by_id = {spec.id: spec for spec in specs}
    for spec in specs:
        for edge in spec.subscriptions:
            source = by_id.get(edge.source)
            if source is None:
                yield (
                    f"bolt {spec.id!r} subscribes to {edge.source!r}, which does not exist: "
                    f"there are {', '.join(sorted(by_id))}"
                )
            elif edge.stream not in source.streams:
                known = ", ".join(sorted(source.streams)) or "no streams"
                yield (
                    f"bolt {spec.id!r} subscribes to stream {edge.stream!r} of {edge.source!r}, "
                    f"which declares {known}"
                )
            else:
                yield from _edge(spec, source, edge.stream, edge.grouping)


def _edge(
    spec: ComponentSpec, source: ComponentSpec, name: str, grouping: Grouping
) -> Iterator[str]:
    stream = source.streams[name]
    edge = f"bolt {spec.id!r} reads {source.id}/{name} by {describe(grouping)}"
    if stream.direct and not isinstance(grouping, Direct):
        yield f"{edge}, but the stream is declared direct: use direct_grouping"
    if isinstance(grouping, Direct) and not stream.direct:
        yield f"{edge}, but the stream is not declared direct: Stream(…, direct=True)"
    if not isinstance(grouping, FieldsGrouping | PartialKey):
        return
    if not grouping.fields:
        yield f"{edge}: name at least one field"
    for wanted in grouping.fields:
        field = next((field for field in stream.fields if field.name == wanted), None)
        if field is None:
            yield f"{edge}, but its fields are {', '.join(stream.names) or 'none'}"
        elif field.type is not None and not _hashable(field.type):
            yield (
                f"{edge}, but field {wanted!r} has the type {field.type}, which has no stable "
                f"hash: group by text, numbers, booleans, bytes, dates or decimals"
            )


def _hashable(kind: pa.DataType) -> bool:
    # Equal nested values may have different encodings, so a hash would part equal keys.
    return not pa.types.is_nested(kind)


def _own_rules(specs: _Specs) -> Iterator[str]:
    """Ask each bolt whose streams exist what it thinks of its place."""
    components = {spec.id: spec for spec in specs}
    streams = {(spec.id, name) for spec in specs for name in spec.streams}
    for spec in specs:
        read = {(edge.source, edge.stream) for edge in spec.subscriptions}
        if isinstance(spec.component, AnyBolt) and read <= streams:
            wiring = wiring_of(components, spec.id)
            for fault in spec.component.faults(wiring, spec.parallelism):
                yield f"bolt {spec.id!r}: {fault}"


def _partitioned_streams(specs: _Specs) -> Iterator[str]:
    for spec in specs:
        if isinstance(spec.component, PartitionedSpout) and set(spec.streams) - {DEFAULT_STREAM}:
            yield f"spout {spec.id!r} is partitioned: it has the default stream only"


def _cycles(specs: _Specs) -> Iterator[str]:
    sources = TopologicalSorter({s.id: [edge.source for edge in s.subscriptions] for s in specs})
    try:
        sources.prepare()
    except CycleError as error:
        yield (
            f"the topology has a cycle through {' → '.join(error.args[1])}: "
            f"a tuple could go round for ever; break it"
        )


def unpicklable_attribute(component: object) -> tuple[str, str] | None:
    """Return the attribute that prevents pickling an object, with the reason.

    The name is empty if the object itself cannot be pickled although all its attributes can.
    """
    why = _pickle_error(component)
    if why is None:
        return None
    attributes = getattr(component, "__dict__", {})
    faults = ((name, _pickle_error(value)) for name, value in attributes.items())
    return next(((name, fault) for name, fault in faults if fault is not None), ("", why))


def _pickle_error(value: object) -> str | None:
    try:
        cloudpickle.dumps(value)
    except Exception as error:  # noqa: BLE001 - any error of any user's __reduce__
        return str(error)
    return None


# The order of the rules is the order of the faults in the error.
_LOCAL_RULES = (_ids, _numbers, _kinds, _methods, _committers, _settings, _picklable)
_GRAPH_RULES = (_sources, _feedback, _references, _own_rules, _partitioned_streams, _cycles)
