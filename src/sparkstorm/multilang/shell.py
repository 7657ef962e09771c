"""How the process of a shell component is started, and what it is told at first."""

import os
import shlex
import shutil
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, final

from sparkstorm.components.context import TaskContext
from sparkstorm.components.processes import ProcessSpec
from sparkstorm.components.wiring import Edge
from sparkstorm.config import Config
from sparkstorm.errors import EnvironmentFault, TopologyError
from sparkstorm.multilang.codec import ParentCodec
from sparkstorm.multilang.framing import JsonSerializer, Serializer
from sparkstorm.multilang.messages import Handshake
from sparkstorm.multilang.msgpack import MsgpackSerializer
from sparkstorm.multilang.resources import Resources

__all__ = ["Shell"]

_SERIALIZERS: Final[Mapping[str, type[Serializer]]] = {
    "json": JsonSerializer,
    "msgpack": MsgpackSerializer,
}
_NOT_TOLD: Final = {"dead_letter_sink", "user"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """The process of a shell component.

    Attributes:
        command: the program and its arguments.
        resources: files that travel with it; its working directory.
        env: variables on top of the worker's; ``PATH`` is appended to the inherited one.
        serializer: how messages are written.
    """

    command: tuple[str, ...]
    resources: Resources | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    serializer: Serializer = field(default_factory=JsonSerializer)

    @classmethod
    def of(
        cls,
        command: str | Sequence[str],
        resources: str | Path | None,
        env: Mapping[str, str] | None,
        serializer: str | Serializer,
    ) -> "Shell":
        """Build it from the arguments of a shell component.

        Raises:
            TopologyError: the command is empty or no text, the serializer is unknown, or the
                folder is not there.
        """
        words = _words(command)
        for pair in (env or {}).items():
            if not all(isinstance(part, str) for part in pair):
                raise TopologyError(f"env takes texts: {pair[0]!r} has the value {pair[1]!r}")
        if isinstance(serializer, str):
            if serializer not in _SERIALIZERS:
                known = ", ".join(_SERIALIZERS)
                raise TopologyError(f"the serializer {serializer!r} is unknown: there are {known}")
            serializer = _SERIALIZERS[serializer]()
        return cls(
            command=tuple(words),
            resources=None if resources is None else Resources.pack(resources),
            env=dict(env or {}),
            serializer=serializer,
        )

    def spec(self, context: TaskContext) -> ProcessSpec:
        """Return how the process is started here; unpack its resources if need be."""
        env = dict(os.environ)
        for name, value in self.env.items():
            before = env.get(name)
            env[name] = f"{before}{os.pathsep}{value}" if name == "PATH" and before else value
        return ProcessSpec(command=self.command, cwd=self._cwd(context), env=env)

    def check(self, context: TaskContext) -> None:
        """Raise EnvironmentFault if the program is not on this host."""
        spec = self.spec(context)
        program = self.command[0]
        found = shutil.which(program, path=spec.env.get("PATH"))
        if found is None and os.sep in program and spec.cwd is not None:
            found = shutil.which(os.path.join(spec.cwd, program))
        if found is None:
            raise EnvironmentFault(
                f"component {context.component!r} runs the command {shlex.join(self.command)!r}, "
                f"but there is no program {program!r} on host {socket.gethostname()}: install it "
                f"there, or put its folder on the PATH of Spark's workers"
            )

    def codec(self) -> ParentCodec:
        """Return a codec for one attachment to the process."""
        return ParentCodec(self.serializer)

    def handshake(self, context: TaskContext) -> Handshake:
        """Return the first message."""
        pids = context.node_folder("pids", lambda _: None)
        return Handshake(conf=_conf(context), context=_context(context), pid_dir=str(pids))

    def _cwd(self, context: TaskContext) -> str | None:
        if self.resources is None:
            return None
        folder = context.node_folder(f"resources-{self.resources.digest}", self.resources.unpack)
        return str(folder)


def _words(command: str | Sequence[str]) -> list[str]:
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError as error:
        raise TopologyError(f"the command {command!r} cannot be split: {error}") from None
    if not words:
        raise TopologyError("a shell component needs a command: the program and its arguments")
    for word in words:
        if not isinstance(word, str):
            raise TopologyError(f"the command {words!r} has the word {word!r}, which is no text")
    return words


def _conf(context: TaskContext) -> dict[str, Any]:
    """The settings by Storm's keys; the user's own under their names."""
    config: Config = context.config
    told = {
        field.alias or name: getattr(config, name)
        for name, field in type(config).model_fields.items()
        if name not in _NOT_TOLD
    }
    mine = {name: value for name, value in config.user.items() if _is_json(value)}
    return {**told, "topology.name": context.topology, "topology.debug": False, **mine}


def _is_json(value: object) -> bool:
    """Whether a child can be told: settings of one's own may be any objects."""
    try:
        JsonSerializer().encode(value)
    except ValueError:
        return False
    return True


def _context(context: TaskContext) -> dict[str, Any]:
    """The place in the topology, as Storm's ``TopologyContext.toJSONString`` writes it."""
    wiring = context.wiring
    return {
        "task->component": {
            str(task): name for name, tasks in context.tasks.items() for task in tasks
        },
        "taskid": context.task,
        "componentid": context.component,
        "streams": list(wiring.streams),
        "stream->outputfields": {name: list(names) for name, names in wiring.streams.items()},
        "stream->target->grouping": _groupings(wiring.targets),
        "source->stream->grouping": _groupings(wiring.sources),
        "source->stream->fields": {
            source: {stream: list(names) for stream, names in streams.items()}
            for source, streams in wiring.source_fields.items()
        },
    }


def _groupings(edges: Mapping[str, Mapping[str, Edge]]) -> dict[str, dict[str, dict[str, Any]]]:
    return {
        outer: {
            inner: {
                "type": edge.grouping,
                **({"fields": list(edge.fields)} if edge.fields else {}),
            }
            for inner, edge in found.items()
        }
        for outer, found in edges.items()
    }
