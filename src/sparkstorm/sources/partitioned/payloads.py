"""Payloads of partitioned spouts' dead letters: the driver reads the messages once more."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import cloudpickle

from sparkstorm.components.spout import Expired, PartitionedSpout, Split, Unreadable
from sparkstorm.dead_letters.values import from_json, to_json
from sparkstorm.errors import SpoutConnectionError
from sparkstorm.streams import Stream
from sparkstorm.tasks.reading.splits import Row, read_rows
from sparkstorm.texts.user_errors import USER_ERRORS, message_of, reason_of

__all__ = ["Payload", "read_payloads", "read_payloads_apart"]

_PATIENCE_SECS = 30.0
"""How long a process that reads a poisonous message may take."""


class Payload(NamedTuple):
    """The payload of a message.

    Attributes:
        values: the values; None if they are not known.
        note: why they are not known.
        origin: what the source says of the message.
    """

    values: tuple[Any, ...] | None
    note: str = ""
    origin: Mapping[str, Any] = {}


def read_payloads(spout: PartitionedSpout, split: Split, stream: Stream) -> list[Payload]:
    """Read the positions in ``split.only``, in this process.

    Raises:
        SpoutConnectionError: the source does not answer.
    """
    try:
        rows = read_rows(spout, split, stream)
        origins = spout.origins(split)
    except SpoutConnectionError:
        raise
    except USER_ERRORS as error:  # the letter goes without
        return _without(split, f"the payload could not be read: {message_of(error)}")
    return [
        _payload(row)._replace(origin=origin) for row, origin in zip(rows, origins, strict=True)
    ]


def read_payloads_apart(spout: PartitionedSpout, split: Split, stream: Stream) -> list[Payload]:
    """Read the positions in a process of its own: reading may end a process, or hang."""
    request = cloudpickle.dumps((spout, split, stream))
    path = os.pathsep.join(filter(None, sys.path))
    try:
        done = subprocess.run(  # noqa: S603 - our own module under our own Python
            [sys.executable, "-m", __name__],
            input=request,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": path},
            timeout=_PATIENCE_SECS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        why = f"reading it takes over {_PATIENCE_SECS:g} s"
        return _without(split, f"the payload is not known: {why}")
    if done.returncode or not done.stdout:
        why = f"it ends the process that reads it (exit code {done.returncode})"
        return _without(split, f"the payload is not known: {why}")
    return [
        Payload(None if values is None else tuple(from_json(values)), note, from_json(origin))
        for values, note, origin in json.loads(done.stdout)
    ]


def _payload(row: Row) -> Payload:
    if row is None:
        return Payload(None, "the source holds no message at this position")
    if isinstance(row, Expired):
        return Payload(None, "the source no longer has the message")
    if isinstance(row, Unreadable):
        return Payload(None, f"its values cannot be made out: {reason_of(row.why)}")
    return Payload(row)


def _without(split: Split, note: str) -> list[Payload]:
    return [Payload(None, note)] * split.count


def _answer() -> None:
    """Read what stdin asks for and write the payloads to stdout; the user's prints go elsewhere."""
    with os.fdopen(os.dup(1), "w") as answer:
        os.dup2(2, 1)
        spout, split, stream = cloudpickle.loads(sys.stdin.buffer.read())
        try:
            found: Sequence[Payload] = read_payloads(spout, split, stream)
        except SpoutConnectionError as error:
            found = _without(split, f"the payload could not be read: {error}")
        rows = [
            (None if p.values is None else to_json(list(p.values)), p.note, to_json(dict(p.origin)))
            for p in found
        ]
        answer.write(json.dumps(rows))


if __name__ == "__main__":
    _answer()
