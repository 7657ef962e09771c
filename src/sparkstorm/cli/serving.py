"""``sparkstorm multilang``: one component as the child of Storm, or of another parent."""

import json
from collections.abc import Iterable
from typing import Any

from sparkstorm.cli.loading import load_component
from sparkstorm.errors import ConfigError
from sparkstorm.multilang.framing import Serializer
from sparkstorm.multilang.serving import serve

__all__ = ["serve_component"]


def serve_component(target: str, arguments: Iterable[str], serializer: str) -> int:
    """Serve the component that a target names; return the exit code.

    Raises:
        SparkstormError: the component cannot be loaded or served.
    """
    values = _values(arguments)
    return serve(lambda: load_component(target, values), _serializer(serializer))


def _values(arguments: Iterable[str]) -> dict[str, Any]:
    """Return the arguments by name: JSON where it is JSON, else text.

    >>> _values(["limit=3", "where=here"])
    {'limit': 3, 'where': 'here'}
    """
    found: dict[str, Any] = {}
    for pair in arguments:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise ConfigError(f"--arg {pair!r} is no argument: write it as NAME=VALUE")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def _serializer(name: str) -> Serializer | None:
    if name == "json":
        return None
    if name == "msgpack":
        from sparkstorm.multilang.msgpack import MsgpackSerializer

        return MsgpackSerializer()
    raise ConfigError(f"--serializer {name!r} is unknown: use json or msgpack")
