"""One dead letter: a frozen value that is a line of JSON on disk."""

import hashlib
import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, final

from sparkstorm.dead_letters.values import Json, from_json, is_whole, to_json
from sparkstorm.verdicts import Failure

__all__ = ["DeadLetter", "letter_id"]

_VERSION = 1
_ID_BYTES = 10


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message that was given up, with everything that is known of it.

    Attributes:
        id: names it; the same message, written down again after a crash, has the same id.
        topology: the topology's name.
        run: the driver's life in which it was given up.
        spout: the component that emitted it.
        task: which task of that spout, counted from 0.
        stream: the stream that it was emitted to.
        fields: the names of its values.
        values: the original payload, as the spout emitted it; None if it is not known.
        direct: for ``emit_direct``, the task it went to, as (component, index).
        msg_id: the spout's own name for it.
        source: of a partitioned spout, what its split was made of, and the position in it.
        failure: why its last attempt failed: reason, component, task, message, traceback.
        attempts: how often it was tried.
        first_time: when its first attempt began, in seconds since 1970.
        last_time: when its last attempt failed.
        replays: how often it was replayed and became a letter again.
        note: why the payload is not known, if so.
    """

    id: str
    topology: str
    run: str
    spout: str
    task: int
    stream: str
    fields: tuple[str, ...]
    values: tuple[Any, ...] | None
    direct: tuple[str, int] | None = None
    msg_id: Any = None
    source: Mapping[str, Any] | None = None
    failure: Failure
    attempts: int
    first_time: float
    last_time: float
    replays: int = 0
    note: str = ""

    @property
    def replayable(self) -> bool:
        """Whether its payload is whole, so that it can be emitted again."""
        return self.values is not None and is_whole(self.values)

    @property
    def payload(self) -> dict[str, Any] | None:
        """The values by their fields' names."""
        return None if self.values is None else dict(zip(self.fields, self.values, strict=True))

    def to_json(self) -> dict[str, Json]:
        """Return it as JSON's types; payload and ids that these lack are tagged."""
        return {
            "version": _VERSION,
            "id": self.id,
            "topology": self.topology,
            "run": self.run,
            "spout": self.spout,
            "task": self.task,
            "stream": self.stream,
            "fields": list(self.fields),
            "values": None if self.values is None else to_json(list(self.values)),
            "direct": None if self.direct is None else list(self.direct),
            "msg_id": to_json(self.msg_id),
            "source": None if self.source is None else to_json(dict(self.source)),
            "failure": self.failure.to_json(),
            "attempts": self.attempts,
            "first_time": self.first_time,
            "last_time": self.last_time,
            "replays": self.replays,
            "note": self.note,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> "DeadLetter":
        """Build it from :meth:`to_json`'s result.

        Raises:
            ValueError: it is not the JSON of a dead letter, or of a later version.
        """
        if data.get("version") != _VERSION:
            raise ValueError(f"it is of version {data.get('version')}, this is {_VERSION}")
        known: dict[str, Any] = {name: data[name] for name in cls.__slots__}
        values, direct = known["values"], known["direct"]
        known["values"] = None if values is None else tuple(from_json(values))
        known["direct"] = None if direct is None else (direct[0], direct[1])
        known["fields"] = tuple(known["fields"])
        known["msg_id"] = from_json(known["msg_id"])
        known["source"] = None if known["source"] is None else from_json(known["source"])
        known["failure"] = Failure.from_json(known["failure"])
        return cls(**known)


def letter_id(
    *, topology: str, spout: str, stream: str, msg_id: Hashable, values: tuple[Any, ...] | None
) -> str:
    """Return a name for a message that every run of the topology gives to it.

    The payload is part of it, because some sources count their messages anew at each connection:
    two messages are one letter only if both the id and the payload are the same.
    """
    payload = None if values is None else to_json(list(values))
    content = [topology, spout, stream, to_json(msg_id), payload]
    text = json.dumps(content, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=_ID_BYTES).hexdigest()
