"""The place of a served component: what the parent's handshake says, as our context."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, final

from sparkstorm.components.context import TaskContext
from sparkstorm.components.wiring import Edge, Wiring
from sparkstorm.config import Config, setting_name
from sparkstorm.errors import ConfigError, ProtocolError
from sparkstorm.multilang.messages import Handshake, ShellTuple
from sparkstorm.tuples import Fields, Tuple

__all__ = ["Place"]


@final
class Place:
    """The place of the component in the parent's topology.

    Attributes:
        context: what the component sees.

    Raises:
        ProtocolError: the handshake lacks what a component needs.
    """

    def __init__(self, handshake: Handshake) -> None:
        told = handshake.context
        try:
            component, task = str(told["componentid"]), int(told["taskid"])
            by_task = {int(number): name for number, name in told["task->component"].items()}
        except (KeyError, ValueError, AttributeError) as error:
            raise ProtocolError(
                f"the parent's handshake has no {error}: the context of Storm 0.10 has it"
            ) from None
        self.context = TaskContext(
            topology=str(handshake.conf.get("topology.name", "")),
            component=component,
            task=task,
            tasks=_ranges(by_task),
            config=_config(handshake.conf),
            sources=[
                (source, stream)
                for source, streams in told.get("source->stream->grouping", {}).items()
                for stream in streams
            ],
            wiring=_wiring(told),
        )
        self._by_task = by_task
        self._fields: dict[tuple[str, str], Fields] = {}

    def tuple_of(self, message: ShellTuple) -> Tuple:
        """Return a tuple of the parent's as a bolt sees it."""
        component = message.comp or self._by_task.get(message.task, "")
        fields = self._fields.get((component, message.stream))
        if fields is None:
            names = self.context.wiring.source_fields.get(component, {}).get(message.stream, ())
            fields = self._fields[component, message.stream] = Fields(names)
        return Tuple(tuple(message.values), _Origin(fields, component, message), 0)

    @property
    def streams(self) -> Mapping[str, tuple[str, ...]]:
        """The fields of each stream that the parent's topology declares for the component."""
        return self.context.wiring.streams


@final
class _Origin:
    """Where a tuple is from, and the parent's id of it."""

    __slots__ = ("_id", "component", "index_of", "names", "stream", "task")

    def __init__(self, fields: Fields, component: str, message: ShellTuple) -> None:
        self.names, self.index_of = fields.names, fields.index_of
        self.component, self.stream, self.task = component, message.stream, message.task
        self._id = message.id

    def identity(self, index: int) -> str:
        """Return the parent's id."""
        return self._id

    def attempt(self, index: int) -> int:
        """Return 1: a parent does not tell."""
        return 1


def _ranges(by_task: Mapping[int, str]) -> dict[str, range]:
    """Return the tasks of each component, which Storm numbers one after the other."""
    found: dict[str, range] = {}
    for name in set(by_task.values()):
        mine = [task for task, owner in by_task.items() if owner == name]
        found[name] = range(min(mine), max(mine) + 1)
    return found


def _config(conf: Mapping[str, Any]) -> Config:
    """Return our settings out of the parent's; all others are the user's own."""
    known: dict[str, object] = {}
    user: dict[str, object] = {}
    for key, value in conf.items():
        name = setting_name(key)
        if name not in Config.model_fields or name == "user" or value is None:
            user[key] = value
            continue
        with suppress(ConfigError):  # Storm's value may mean nothing here
            known.update(_alone(name, value))
    return Config(**known, user=user)


def _alone(name: str, value: object) -> dict[str, object]:
    """Return a setting alone, if our configuration takes the value.

    Raises:
        ConfigError: the value does not fit.
    """
    Config(**{name: value})
    return {name: value}


def _wiring(told: Mapping[str, Any]) -> Wiring:
    return Wiring(
        streams={name: tuple(f) for name, f in told.get("stream->outputfields", {}).items()},
        targets=dict(_edges(told.get("stream->target->grouping", {}))),
        sources=dict(_edges(told.get("source->stream->grouping", {}))),
        source_fields={
            source: {stream: tuple(fields) for stream, fields in streams.items()}
            for source, streams in told.get("source->stream->fields", {}).items()
        },
    )


def _edges(told: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Edge]]]:
    for outer, found in told.items():
        yield (
            outer,
            {
                inner: Edge(grouping=edge.get("type", ""), fields=tuple(edge.get("fields", ())))
                for inner, edge in found.items()
            },
        )
