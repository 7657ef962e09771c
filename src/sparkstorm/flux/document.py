"""The document: the YAML text with substitutions and includes, every mapping with its line."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import yaml

from sparkstorm.errors import TopologyError
from sparkstorm.texts.showing import shown

__all__ = ["Node", "fault", "read_document"]

_VARIABLE = re.compile(r"\$\{([^}\s]+)\}")
_SECTIONS = ("components", "spouts", "bolts", "streams")
_KNOWN = ("name", "config", "includes", *_SECTIONS)
_REFUSED = {
    "topologySource": "name a Python file or module that defines the topology instead",
    "workerHooks": "a component's prepare and cleanup do that here",
}


@final
class Node(dict[str, Any]):
    """A mapping of the document.

    Attributes:
        where: the file and the line, for errors.
    """

    where: str = ""

    def items_of(self, key: str) -> list["Node"]:
        """Return a list of mappings; empty if there is none.

        Raises:
            TopologyError: there is something else.
        """
        found = self.get(key) or []
        if not isinstance(found, list) or not all(isinstance(one, Node) for one in found):
            raise fault(self, f"{key!r} is a list of mappings, not {shown(found)}")
        return found

    def only(self, *known: str) -> None:
        """Refuse other keys: a misspelt key would be passed over.

        Raises:
            TopologyError: there are some.
        """
        if unknown := sorted(set(map(str, self)) - set(known)):
            raise fault(self, f"unknown keys {', '.join(unknown)}; known: {', '.join(known)}")

    def text(self, key: str) -> str:
        """Return a value that has to be there.

        Raises:
            TopologyError: it is missing, or no text.
        """
        value = self.get(key)
        if not isinstance(value, str) or not value:
            raise fault(self, f"{key!r} is missing: write {key}: TEXT")
        return value


def fault(node: Node, text: str) -> TopologyError:
    """Return the error about a mapping, with its place."""
    return TopologyError(f"{node.where}: {text}")


def read_document(path: Path, properties: Mapping[str, str] | None = None) -> Node:
    """Read a file with its includes.

    Args:
        path: the file.
        properties: the values of ``${name}``; environment variables are ``${ENV-NAME}``.

    Raises:
        TopologyError: names the file, the line and the mend.
    """
    document = _read(path, properties or {})
    for include in document.items_of("includes"):
        where = _included(path, include)
        _merge(document, _read(where, properties or {}), over=bool(include.get("override")))
    return document


def _included(path: Path, include: Node) -> Path:
    """Return the path of an include; of a resource of Storm's, below a folder around this file."""
    name = include.text("file")
    folders = path.parent.absolute().parents if include.get("resource") else ()
    places = [path.parent / name, *(folder / name.lstrip("/") for folder in folders)]
    return next((place for place in places if place.is_file()), places[0])


def _read(path: Path, properties: Mapping[str, str]) -> Node:
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise TopologyError(f"cannot read {str(path)!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TopologyError(f"{str(path)!r} is no UTF-8: {error}") from error
    try:
        loader = _Loader(_substituted(text, path, properties))
        loader.file = str(path)
        document = loader.get_single_data()
    except yaml.YAMLError as error:
        raise TopologyError(f"{str(path)!r} is no YAML: {error}") from error
    if not isinstance(document, Node):
        raise TopologyError(f"{str(path)!r} holds no topology: begin with name, spouts and bolts")
    for key, mend in _REFUSED.items():
        if key in document:
            raise fault(document, f"{key!r} is not supported: {mend}")
    document.only(*_KNOWN)
    return document


def _substituted(text: str, path: Path, properties: Mapping[str, str]) -> str:
    """Replace ``${name}``; a name without value is a fault, not an empty text."""

    def value(found: re.Match[str]) -> str:
        name = found[1]
        environment = os.environ if name.startswith("ENV-") else properties
        given = environment.get(name.removeprefix("ENV-"))
        if given is None:
            line = text.count("\n", 0, found.start()) + 1
            mend = f"give the property behind --, as {name}=VALUE"
            if name.startswith("ENV-"):
                mend = f"set the environment variable {name.removeprefix('ENV-')!r}"
            raise TopologyError(f"{path}, line {line}: ${{{name}}} has no value: {mend}")
        return given

    return _VARIABLE.sub(value, text)


def _merge(document: Node, other: Node, *, over: bool) -> None:
    """Add what an included file has; of two with the same id one stays."""
    config, more = document.get("config") or {}, other.get("config") or {}
    document["config"] = {**config, **more} if over else {**more, **config}
    for section in _SECTIONS:
        mine, theirs = document.items_of(section), other.items_of(section)
        first, second = (mine, theirs) if over else (theirs, mine)
        named = {one["id"]: one for one in (*first, *second) if "id" in one}
        document[section] = [*named.values(), *(one for one in (*mine, *theirs) if "id" not in one)]


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Makes plain values, and mappings that know their line."""

    file = ""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> Node:
    made = Node(loader.construct_mapping(node, deep=True))
    made.where = f"{loader.file}, line {node.start_mark.line + 1}"
    return made


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
