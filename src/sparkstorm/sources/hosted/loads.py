"""Loads of hosted spouts: emitted messages as packets, and the facts kept of loads in flight."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Protocol, final

import numpy as np

from sparkstorm.acking.lineage import Indexes
from sparkstorm.packets.columns import CoderError
from sparkstorm.packets.load import Load
from sparkstorm.packets.packet import Body
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.sources.hosted.intake import EmittedMessages, Intake, LoadKey
from sparkstorm.sources.originals import Original, Originals
from sparkstorm.sources.packing import encode_rows, packed_load
from sparkstorm.sources.source import RootNumbers
from sparkstorm.verdicts import Failure, Reason

__all__ = ["LoadMaker", "PendingLoad", "Refused"]

_MAX_LOAD_BYTES = 16 * 1024 * 1024
"""A load travels inside a Spark task, which may not exceed 128 MB (spark.rpc.message.maxSize)."""


class Refused(NamedTuple):
    """A message that cannot be sent, until its spout has heard of it."""

    msg_id: Hashable
    failure: Failure
    original: Original


@final
class PendingLoad:
    """The facts kept of a load in flight: the ids of its messages, and the messages themselves."""

    __slots__ = ("attempt", "bytes_each", "ids", "originals")

    @classmethod
    def of(cls, load: Load, taken: EmittedMessages, attempt: int, now: float) -> "PendingLoad":
        """Return the facts of a load that is put into a batch now."""
        return cls(taken.msg_ids, Originals(load, now), attempt)

    def __init__(self, ids: Sequence[Hashable], originals: Originals, attempt: int = 1) -> None:
        self.ids = list(ids)
        self.attempt = attempt
        self.originals = originals
        self.bytes_each = originals.nbytes // max(len(ids), 1)

    def shrink(self, left: Indexes) -> None:
        """Give back the memory of ended messages, if it is worth while.

        Args:
            left: the places of messages still in flight.
        """
        if self.originals.wastes(len(left)):
            self.originals.keep(left.tolist())
            gone = np.ones(len(self.ids), np.bool_)
            gone[left] = False
            for place in np.flatnonzero(gone).tolist():
                self.ids[place] = None


class Refuse(Protocol):
    """Hears of messages that cannot be sent."""

    def __call__(
        self, msg_id: Hashable, failure: Failure, stream: str, values: Any, direct: int | None
    ) -> None:
        """Let a message fail."""
        ...


@final
class LoadMaker:
    """Makes loads of the messages that one task has emitted.

    Args:
        plan: the topology's plan.
        component: the spout's id.
        task: the task's number.
        intake: gets messages back that are too large together.
        refuse: hears of messages that cannot be sent.
    """

    def __init__(
        self, plan: Plan, component: str, task: int, intake: Intake, refuse: Refuse
    ) -> None:
        self._plan = plan
        self._component = component
        self._task = task
        self._intake = intake
        self._refuse = refuse

    def make(self, key: LoadKey, taken: EmittedMessages, numbers: RootNumbers) -> Load | None:
        """Return the load of these messages, or None if none of them can be sent.

        Messages that do not fit, or are too large together, are taken out of ``taken``.
        """
        stream = StreamKey(self._component, key.stream)
        body = self._encode(stream, taken)
        while body is not None and body.nbytes > _MAX_LOAD_BYTES and len(taken) > 1:
            self._intake.put_back(key, taken.cut(len(taken) // 2))
            body = self._encode(stream, taken)
        if body is None:
            return None
        first = numbers.first(self._task) if key.tracked else None
        lane = numbers.lane(self._task)
        load = packed_load(stream, self._task, body, first=first, lane=lane, direct=taken.direct)
        return numbers.note(load)

    def _encode(self, key: StreamKey, taken: EmittedMessages) -> Body | None:
        """Encode the messages; messages that do not fit the declared fields are refused."""
        stream = self._plan.stream(key)
        while taken.rows:
            try:
                return encode_rows(stream, taken.rows)
            except CoderError as error:
                self._refuse_rows(key, taken, error)
        return None

    def _refuse_rows(self, key: StreamKey, taken: EmittedMessages, error: CoderError) -> None:
        for row, why in error.faults.items():
            failure = Failure(
                reason=Reason.ERROR,
                component=self._component,
                task=self._task,
                message=f"stream {str(key)!r}: {why}",
                final=True,
            )
            values = tuple(taken.rows[row])
            self._refuse(taken.msg_ids[row], failure, key.stream, values, taken.direct_of(row))
        taken.drop(error.rows)
