"""The rules of a well-wired topology, one function each; all faults are reported together."""

from collections.abc import Iterator, Sequence

import cloudpickle
import pyarrow as pa

from sparkstorm.components.bolt import AnyBolt
from sparkstorm.components.spout import PartitionedSpout, Spout
from sparkstorm.config import COMPONENT_KEYS
from sparkstorm.streams import DEFAULT_STREAM
from sparkstorm.topology.graph import ComponentSpec
from sparkstorm.topology.grouping import Direct, FieldsGrouping, PartialKey, describe

__all__ = ["faults_of", "unpicklable_attribute"]

_Specs = Sequence[ComponentSpec]


def faults_of(specs: _Specs, *, complete: bool = True) -> list[str]:
    """Return a sentence for each fault; [] for a good topology.

    ``complete`` is False if some component could not be read at all: then the rules about
    references are left out, since they would only repeat that.
    """
    rules = _LOCAL_RULES + (_GRAPH_RULES if complete else ())
    return [fault for rule in rules for fault in rule(specs)]


def _ids(specs: _Specs) -> Iterator[str]:
    seen: set[str] = set()
    for spec in specs:
        if spec.id in seen:
            yield f"the id {spec.id!r} is used twice: every component needs its own"
        seen.add(spec.id)
        for name in (spec.id, *spec.streams):
            if not name:
                yield "a component or stream has an empty id"
            elif name.startswith("__"):
                yield f"{name!r} is reserved: ids that start with two underscores are the system's"
            elif any(char in name for char in "/\\\0\n") or name in (".", ".."):
                yield f"{name!r} is not an id: it contains path characters"


def _numbers(specs: _Specs) -> Iterator[str]:
    for spec in specs:
        if spec.parallelism < 1:
            yield f"component {spec.id!r} has parallelism {spec.parallelism}: it needs at least 1"
        if spec.concurrency < 1:
            yield f"component {spec.id!r} has concurrency {spec.concurrency}: it needs at least 1"
        if spec.concurrency > 1 and spec.is_stateful:
            yield (
                f"component {spec.id!r} keeps state and has concurrency {spec.concurrency}: "
                f"state has one writer, use more tasks instead"
            )


def _kinds(specs: _Specs) -> Iterator[str]:
    for spec in specs:
        component = spec.component
        if isinstance(component, type):
            yield f"component {spec.id!r} is the class {component.__name__}: pass an instance of it"
        elif not isinstance(component, Spout | PartitionedSpout | AnyBolt):
            yield f"component {spec.id!r} is a {type(component).__name__}: not a spout, not a bolt"


def _settings(specs: _Specs) -> Iterator[str]:
    for spec in specs:
        for key in spec.settings:
            if key not in COMPONENT_KEYS:
                yield (
                    f"component {spec.id!r} sets {key!r}: a component may set "
                    f"{', '.join(sorted(COMPONENT_KEYS))} only"
                )


def _picklable(specs: _Specs) -> Iterator[str]:
    for spec in specs:
        attribute = unpicklable_attribute(spec.component)
        if attribute is not None:
            name, why = attribute
            yield (
                f"component {spec.id!r} cannot be sent to the workers: its attribute {name!r} "
                f"cannot be pickled ({why}). Make it in open or prepare"
            )


def _sources(specs: _Specs) -> Iterator[str]:
    if not any(isinstance(spec.component, Spout | PartitionedSpout) for spec in specs):
        yield "the topology has no spout: add one with set_spout"
    for spec in specs:
        if isinstance(spec.component, AnyBolt) and not spec.subscriptions:
            yield f"bolt {spec.id!r} subscribes to nothing: give it a grouping"


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


def _edge(spec: ComponentSpec, source: ComponentSpec, name: str, grouping: object) -> Iterator[str]:
    stream = source.streams[name]
    edge = f"bolt {spec.id!r} reads {source.id}/{name} by {describe(grouping)}"  # type: ignore[arg-type]
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
    return not pa.types.is_nested(kind)


def _partitioned_streams(specs: _Specs) -> Iterator[str]:
    for spec in specs:
        if isinstance(spec.component, PartitionedSpout) and set(spec.streams) - {DEFAULT_STREAM}:
            yield f"spout {spec.id!r} is partitioned: it has the default stream only"


def _cycles(specs: _Specs) -> Iterator[str]:
    readers: dict[str, list[str]] = {spec.id: [] for spec in specs}
    waiting = {spec.id: 0 for spec in specs}
    for spec in specs:
        for edge in spec.subscriptions:
            if edge.source in readers:
                readers[edge.source].append(spec.id)
                waiting[spec.id] += 1
    free = [name for name, count in waiting.items() if count == 0]
    while free:
        for reader in readers[free.pop()]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                free.append(reader)
    stuck = [name for name, count in waiting.items() if count > 0]
    if stuck:
        yield (
            f"the topology has a cycle through {' → '.join(stuck)}: "
            f"a tuple could go round for ever; break it"
        )


def unpicklable_attribute(component: object) -> tuple[str, str] | None:
    """Return the attribute that keeps an object from being pickled, with the reason."""
    for name, value in vars(component).items() if hasattr(component, "__dict__") else ():
        try:
            cloudpickle.dumps(value)
        except Exception as error:  # noqa: BLE001 - any error of any user's __reduce__
            return name, str(error)
    return None


_LOCAL_RULES = (_ids, _numbers, _kinds, _settings, _picklable)
_GRAPH_RULES = (_sources, _references, _partitioned_streams, _cycles)
