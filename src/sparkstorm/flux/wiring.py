"""The wiring: from a document to a topology with its name and settings."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from sparkstorm.config import Config, setting_name
from sparkstorm.errors import TopologyError
from sparkstorm.flux.beans import BEAN_KEYS, Beans
from sparkstorm.flux.classes import KNOWN, is_unknown
from sparkstorm.flux.document import Node, fault, read_document
from sparkstorm.topology.builder import BoltDeclarer, TopologyBuilder
from sparkstorm.topology.graph import Topology

__all__ = ["FluxTopology", "load_flux"]

_COMPONENT_KEYS = ("parallelism", "numTasks", "config")
_LOADS = ("onHeapMemoryLoad", "offHeapMemoryLoad", "cpuLoad")
"""Wishes to Storm's scheduler; Spark has no such scheduler."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FluxTopology:
    """A topology out of a document.

    Attributes:
        topology: the topology.
        name: its name; empty if the document has none.
        settings: the document's settings that sparkstorm knows.
        ignored: the names of the others, which are Storm's own.
    """

    topology: Topology
    name: str
    settings: Mapping[str, Any]
    ignored: tuple[str, ...]


def load_flux(path: Path, properties: Mapping[str, str] | None = None) -> FluxTopology:
    """Load a topology from a file of Apache Storm's Flux.

    Args:
        path: the YAML file.
        properties: the values of ``${name}``.

    Raises:
        TopologyError: names the file, the line and the mend.
    """
    document = read_document(path, properties)
    _check_classes(document)
    _check_keys(document)
    beans, builder = Beans(), TopologyBuilder()
    for node in document.items_of("components"):
        beans.make(node)
    for node in document.items_of("spouts"):
        _set(builder.set_spout(node.text("id"), beans.make(node), _parallelism(node)), node)
    bolts: dict[str, BoltDeclarer] = {}
    for node in document.items_of("bolts"):
        name = node.text("id")
        bolts[name] = builder.set_bolt(name, beans.make(node), _parallelism(node))
        _set(bolts[name], node)
    for node in document.items_of("streams"):
        _connect(node, bolts, beans)
    config = document.get("config") or {}
    known = {
        key: value for key, value in config.items() if setting_name(key) in Config.model_fields
    }
    return FluxTopology(
        topology=builder.create_topology(),
        name=str(document.get("name") or ""),
        settings=known,
        ignored=tuple(sorted(set(config) - set(known))),
    )


def _check_keys(document: Node) -> None:
    for node in document.items_of("components"):
        node.only(*BEAN_KEYS)
    for section in ("spouts", "bolts"):
        for node in document.items_of(section):
            node.only(*BEAN_KEYS, *_COMPONENT_KEYS, *_LOADS)
    for node in document.items_of("streams"):
        node.only("id", "name", "from", "to", "grouping")
        if isinstance(node.get("grouping"), Node):
            node["grouping"].only("type", "args", "streamId", "customClass")


def _check_classes(document: Node) -> None:
    """Refuse classes that nobody here has: all of them in one sentence."""
    found = {
        node["className"]: node
        for section in ("components", "spouts", "bolts")
        for node in _nodes(document.items_of(section))
        if isinstance(node.get("className"), str)
    }
    unknown = sorted(name for name in found if is_unknown(name))
    if unknown:
        places = "; ".join(f"{name} ({found[name].where})" for name in unknown)
        raise TopologyError(
            f"no class here has the name of {places}. Give a Python class, as module:Class. Of "
            f"Storm's Java classes these are known: {', '.join(KNOWN)}"
        )


def _nodes(value: Any) -> Iterator[Node]:
    """Yield all mappings within a value."""
    if isinstance(value, Node):
        yield value
        for one in value.values():
            yield from _nodes(one)
    elif isinstance(value, list):
        for one in value:
            yield from _nodes(one)


def _parallelism(node: Node) -> int:
    value = node.get("parallelism", 1)
    if not isinstance(value, int):
        raise fault(node, f"parallelism is a number, not {value!r}")
    return value


def _set(declarer: Any, node: Node) -> None:
    if node.get("numTasks") is not None:
        declarer.set_num_tasks(node["numTasks"])
    for key, value in (node.get("config") or {}).items():
        declarer.add_configuration(key, value)


def _connect(node: Node, bolts: Mapping[str, BoltDeclarer], beans: Beans) -> None:
    grouping = node.get("grouping")
    if not isinstance(grouping, Node):
        raise fault(node, "a stream needs a grouping: write grouping: {type: SHUFFLE}")
    reader = bolts.get(node.text("to"))
    if reader is None:
        raise fault(
            node, f"there is no bolt {node['to']!r}; there are: {', '.join(bolts) or 'none'}"
        )
    source, stream = node.text("from"), grouping.get("streamId") or "default"
    kind = str(grouping.get("type", "")).upper()
    arguments = grouping.get("args") or []
    ways: dict[str, Callable[[], object]] = {
        "ALL": lambda: reader.all_grouping(source, stream),
        "DIRECT": lambda: reader.direct_grouping(source, stream),
        "SHUFFLE": lambda: reader.shuffle_grouping(source, stream),
        "LOCAL_OR_SHUFFLE": lambda: reader.local_or_shuffle_grouping(source, stream),
        "GLOBAL": lambda: reader.global_grouping(source, stream),
        "NONE": lambda: reader.none_grouping(source, stream),
        "FIELDS": lambda: reader.fields_grouping(source, arguments, stream),
        "PARTIAL_KEY": lambda: reader.partial_key_grouping(source, arguments, stream),
        "CUSTOM": lambda: reader.custom_grouping(source, _custom(grouping, beans), stream),
    }
    if kind not in ways:
        raise fault(
            grouping, f"the grouping {kind or 'without a type'} is none of {', '.join(ways)}"
        )
    ways[kind]()


def _custom(grouping: Node, beans: Beans) -> Any:
    custom = grouping.get("customClass")
    if not isinstance(custom, Node):
        raise fault(grouping, "a CUSTOM grouping needs customClass: {className: …}")
    return beans.make(custom)
