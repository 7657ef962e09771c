"""Messages of the protocol as values, and how each is written as an object of JSON's types.

Children differ in how they write the same message; :func:`from_child` reads all known ways. An
empty id or stream and a task of 0 count as absent: some languages cannot leave a field out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, final

from sparkstorm.errors import ProtocolError
from sparkstorm.texts.showing import shown

__all__ = [
    "HEARTBEAT",
    "Ack",
    "ChildMessage",
    "Command",
    "Emit",
    "Error",
    "Fail",
    "Handshake",
    "Log",
    "Metrics",
    "MsgId",
    "ParentMessage",
    "Pid",
    "ShellTuple",
    "Sync",
    "TaskIds",
    "Unknown",
    "from_child",
    "from_parent",
    "to_wire",
]

HEARTBEAT: Final = "__heartbeat"
"""The stream of heartbeat tuples; a child answers each with ``sync``."""

MsgId: TypeAlias = str | int | float
"""The id of a spout's message, exactly as its child wrote it."""

_COMMANDS: Final = ("next", "ack", "fail", "activate", "deactivate")
_LEVELS: Final = {"trace": 0, "debug": 1, "info": 2, "warn": 3, "warning": 3, "error": 4}
_INFO: Final = 2

# --- from the parent to the child ----------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Handshake:
    """The first message to every child: settings, place in the topology, folder for its pid."""

    conf: Mapping[str, Any]
    context: Mapping[str, Any]
    pid_dir: str


@final
@dataclass(slots=True, kw_only=True)
class ShellTuple:
    """A tuple for a bolt. ``comp`` is None for heartbeats."""

    id: str
    comp: str | None
    stream: str
    task: int
    values: Sequence[Any]

    @property
    def is_heartbeat(self) -> bool:
        """Whether it asks for a ``sync`` and carries no data."""
        return self.task == -1 and self.stream == HEARTBEAT


@final
@dataclass(frozen=True, slots=True)
class Command:
    """A command for a spout: ``next``, ``ack``, ``fail``, ``activate`` or ``deactivate``."""

    command: str
    id: MsgId = ""


@final
@dataclass(frozen=True, slots=True)
class TaskIds:
    """The tasks that an emit went to, in answer to it."""

    tasks: tuple[int, ...]


ParentMessage: TypeAlias = Handshake | ShellTuple | Command | TaskIds

# --- from the child to the parent ----------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Pid:
    """The child's answer to the handshake."""

    pid: int


@final
@dataclass(slots=True, kw_only=True)
class Emit:
    """A new tuple. ``id`` is a spout's; ``task`` is None unless the emit is direct."""

    values: Sequence[Any]
    stream: str = "default"
    task: int | None = None
    anchors: tuple[str, ...] = ()
    id: MsgId | None = None
    need_task_ids: bool = True


@final
@dataclass(slots=True)
class Ack:
    """A bolt is done with a tuple."""

    id: str


@final
@dataclass(slots=True)
class Fail:
    """A bolt fails a tuple."""

    id: str


@final
@dataclass(frozen=True, slots=True)
class Sync:
    """A spout ends its answer to a command; a bolt answers a heartbeat."""


@final
@dataclass(frozen=True, slots=True)
class Log:
    """A line for the log; ``level`` from 0, trace, to 4, error."""

    text: str
    level: int = _INFO


@final
@dataclass(frozen=True, slots=True)
class Error:
    """An error to be reported; nothing fails by it."""

    text: str


@final
@dataclass(frozen=True, slots=True)
class Metrics:
    """A value for a metric; ``params`` is text if the child's JSON was broken."""

    name: str
    params: Any


@final
@dataclass(frozen=True, slots=True)
class Unknown:
    """A command that the protocol does not have: bolts ignore it, for spouts it is an error."""

    command: str
    fields: Mapping[str, Any] = field(default_factory=dict)


ChildMessage: TypeAlias = Pid | Emit | Ack | Fail | Sync | Log | Error | Metrics | Unknown


def to_wire(message: ParentMessage | ChildMessage) -> dict[str, Any] | list[int]:
    """Return a message as the object that is serialized.

    >>> to_wire(Ack("7"))
    {'command': 'ack', 'id': '7'}
    """
    match message:
        case ShellTuple(id=id_, comp=comp, stream=stream, task=task, values=values):
            return {"id": id_, "comp": comp, "stream": stream, "task": task, "tuple": [*values]}
        case TaskIds():
            return list(message.tasks)
        case Command():
            return {"command": message.command, "id": message.id}
        case Handshake():
            return {
                "pidDir": message.pid_dir,
                "conf": dict(message.conf),
                "context": dict(message.context),
            }
        case _:
            return _child_to_wire(message)


def from_child(wire: object) -> ChildMessage:
    """Return the message that a child has sent as this object.

    Raises:
        ProtocolError: it is no message, or lacks a field.
    """
    if not isinstance(wire, dict):
        raise ProtocolError(f"the child sent {shown(wire)}: a message is an object with a command")
    match wire.get("command"):
        case "emit":
            return _emit(wire)
        case "ack":
            return Ack(_tuple_id(wire))
        case "fail":
            return Fail(_tuple_id(wire))
        case "sync":
            return Sync()
        case "log":
            return Log(_text(wire.get("msg")), _level(wire.get("level")))
        case "error":
            return Error(_text(wire.get("msg")))
        case "metrics":
            return Metrics(_text(wire.get("name")), wire.get("params"))
        case None if "pid" in wire:
            return Pid(_whole("pid", wire["pid"]))
        case str(command):
            return Unknown(command, {k: v for k, v in wire.items() if k != "command"})
    raise ProtocolError(f"the child sent {shown(wire)}, which has no command")


def from_parent(wire: object) -> ParentMessage:
    """Return the message that a parent has sent as this object.

    Raises:
        ProtocolError: it is no message, or lacks a field.
    """
    if isinstance(wire, list):
        return TaskIds(tuple(_whole("task", task) for task in wire))
    if not isinstance(wire, dict):
        raise ProtocolError(f"the parent sent {shown(wire)}, which is no message")
    if "conf" in wire or "context" in wire:
        return Handshake(
            conf=wire.get("conf") or {},
            context=wire.get("context") or {},
            pid_dir=_text(wire.get("pidDir")),
        )
    if wire.get("command") in _COMMANDS:
        return Command(wire["command"], wire.get("id", ""))
    values = wire.get("tuple")
    if "command" in wire or not isinstance(values, list):
        raise ProtocolError(f"the parent sent {shown(wire)}: neither a known command nor a tuple")
    comp = wire.get("comp")
    return ShellTuple(
        id=_text(wire.get("id")),
        comp=None if comp is None else _text(comp),
        stream=_text(wire.get("stream")) or "default",
        task=_whole("task", wire.get("task", 0)),
        values=values,
    )


def _child_to_wire(message: ChildMessage) -> dict[str, Any]:
    match message:
        case Emit():
            return _emit_to_wire(message)
        case Ack() | Fail():
            return {"command": type(message).__name__.lower(), "id": message.id}
        case Sync():
            return {"command": "sync"}
        case Log():
            return {"command": "log", "msg": message.text, "level": message.level}
        case Error():
            return {"command": "error", "msg": message.text}
        case Metrics():
            return {"command": "metrics", "name": message.name, "params": message.params}
        case Pid():
            return {"pid": message.pid}
        case Unknown():
            return {"command": message.command, **message.fields}


def _emit_to_wire(message: Emit) -> dict[str, Any]:
    wire: dict[str, Any] = {"command": "emit", "tuple": list(message.values)}
    wire["stream"] = message.stream
    if message.task is not None:
        wire["task"] = message.task
    if message.anchors:
        wire["anchors"] = list(message.anchors)
    if message.id is not None:
        wire["id"] = message.id
    if not message.need_task_ids:
        wire["need_task_ids"] = False
    return wire


def _emit(wire: dict[str, Any]) -> Emit:
    values = wire.get("tuple")
    if not isinstance(values, list):
        raise ProtocolError(f"the child emitted {shown(values)}: a tuple is a list of values")
    field_of = wire.get
    anchors = field_of("anchors") or []
    if not isinstance(anchors, list):
        anchors = [anchors]
    stream, task = field_of("stream"), field_of("task")
    return Emit(
        values=values,
        stream=stream if type(stream) is str and stream else _text(stream) or "default",
        task=_whole("task", task) or None if task else None,  # 0 is none
        anchors=tuple([one if type(one) is str else str(one) for one in anchors]),
        id=_msg_id(field_of("id")),
        need_task_ids=field_of("need_task_ids") is not False,
    )


def _msg_id(value: object) -> MsgId | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str | int | float):
        raise ProtocolError(f"the child emitted the id {shown(value)}: use a text or a number")
    return value


def _tuple_id(wire: dict[str, Any]) -> str:
    found = wire.get("id")
    if isinstance(found, str) or (isinstance(found, int) and not isinstance(found, bool)):
        return str(found)
    raise ProtocolError(f"the child sent {shown(wire)}: it needs the id of a tuple")


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else str(value)


def _whole(name: str, value: object) -> int:
    try:
        number = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or isinstance(value, bool):
        raise ProtocolError(f"the {name} {shown(value)} is no whole number")
    return int(number)


def _level(value: object) -> int:
    if isinstance(value, str):
        return _LEVELS.get(value.lower(), _INFO)
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 4
    return int(value) if known else _INFO  # type: ignore[call-overload]
