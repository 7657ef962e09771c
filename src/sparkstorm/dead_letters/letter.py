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
    """A given-up message, with all that is known of it.

    Attributes:
        id: the letter's name; the same message, written again after a crash, has the same id.
        topology: the topology's name.
        run: the id of the run that gave the message up.
        spout: the component that emitted the message.
        task: the task of the spout, counted from 0.
        stream: the stream of the emit.
        fields: the names of the values.
        values: the original payload, as the spout emitted it; None if unknown.
        direct: for ``emit_direct`` the receiving task, as (component, index).
        msg_id: the spout's own name for the message.
        source: of a partitioned spout, the split's data and the position in the split; of a queue,
            the bytes of a message that could not be decoded.
        failure: why the last attempt failed: reason, component, task, message, traceback.
        attempts: how many attempts there were.
        first_time: when the first attempt began, in seconds since 1970.
        last_time: when the last attempt failed.
        replays: how often the letter was replayed and became a letter again.
        note: why the payload is unknown, if so.
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
        """Whether the payload is whole, so the message can be emitted again."""
        return self.values is not None and is_whole(self.values)

    @property
    def payload(self) -> dict[str, Any] | None:
        """The values by their fields' names."""
        return None if self.values is None else dict(zip(self.fields, self.values, strict=True))

    def to_json(self) -> dict[str, Json]:
        """Return the letter as JSON types; values of other types are tagged."""
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
        """Build a letter from the result of :meth:`to_json`.

        Raises:
            ValueError: the data is not the JSON of a dead letter, or of another version.
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
    """Return a message's name, the same in every run of the topology.

    The name covers the payload, because some sources count their messages anew at each connection.
    Two messages are one letter only if both the id and the payload are the same.
    """
    payload = None if values is None else to_json(list(values))
    content = [topology, spout, stream, to_json(msg_id), payload]
    text = json.dumps(content, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=_ID_BYTES).hexdigest()
