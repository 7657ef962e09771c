"""The inbox: what one task received in one batch, and what became of each tuple."""

from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.lineage import Lineage
from sparkstorm.execution.batch import BatchInfo
from sparkstorm.execution.packet import Note, Packet
from sparkstorm.planning.plan import Plan
from sparkstorm.tuples import Fields, Tuple
from sparkstorm.verdicts import Failure

__all__ = ["ACKED", "FAILED", "OPEN", "Inbox", "PacketOrigin"]

OPEN, ACKED, FAILED = 0, 1, 2
"""What became of a tuple; a byte each."""


@final
class PacketOrigin:
    """What the tuples of one packet share (:class:`sparkstorm.tuples.Origin`)."""

    __slots__ = ("component", "inbox", "index_of", "names", "stream", "task")

    def __init__(self, inbox: "Inbox", fields: Fields, component: str, stream: str, task: int):
        self.inbox = inbox
        self.index_of = fields.index_of
        self.names = fields.names
        self.component = component
        self.stream = stream
        self.task = task

    def identity(self, index: int) -> str:
        """The tuple's id as text; empty when it is not tracked."""
        found = self.inbox.lineage.id_of(index)
        return str(found) if found else ""

    def attempt(self, index: int) -> int:
        """Which try of its message this tuple belongs to."""
        roots = self.inbox.lineage.roots_of(index)
        return max((self.inbox.batch.attempt(root) for root in roots), default=1)


@final
class Inbox:
    """The tuples of one task in one batch, numbered in the order in which they are executed.

    ``others`` lists those that the running ``execute`` acked although they are not its own input
    (tuples that the bolt held), so that these acks can be taken back.
    """

    __slots__ = ("_packets", "batch", "failures", "lineage", "others", "resets", "status", "task")

    def __init__(self, packets: Sequence[Packet], task: int, batch: BatchInfo) -> None:
        self._packets = packets
        self.task = task
        self.batch = batch
        self.lineage = Lineage.concat([packet.lineage() for packet in packets])
        self.status = bytearray(len(self.lineage))
        self.others: list[int] = []
        self.failures: dict[int, Failure] = {}
        self.resets: list[int] = []

    @classmethod
    def empty(cls) -> "Inbox":
        """An inbox that no tuple belongs to."""
        return cls((), 0, BatchInfo(number=-1))

    def __len__(self) -> int:
        return len(self.status)

    def deliveries(self, plan: Plan) -> Iterator[tuple[PacketOrigin, Iterator[tuple[int, Any]]]]:
        """Decode packet by packet: the origin, and the numbered values of its tuples.

        The caller makes the tuples, one at a time: this is the innermost loop of everything.
        """
        start = 0
        for packet in self._packets:
            key = plan.stream_keys[packet.head.stream]
            fields = Fields(plan.stream(key).names)
            origin = PacketOrigin(self, fields, key.component, key.stream, packet.head.source)
            yield origin, enumerate(_rows(packet), start)
            start += packet.head.count

    def tuples(self, plan: Plan) -> Iterator[Tuple]:
        """Decode all tuples."""
        for origin, numbered in self.deliveries(plan):
            for index, values in numbered:
                yield Tuple(values, origin, index)

    def ack_rest(self) -> None:
        """Mark all tuples as acked that did not fail."""
        self.status[:] = self.status.replace(bytes([OPEN]), bytes([ACKED]))

    def fail(self, index: int, failure: Failure) -> None:
        """Mark a tuple as failed."""
        self.status[index] = FAILED
        self.failures[index] = failure

    def fail_others(self, failure: Failure) -> None:
        """Mark the other tuples as failed that the running ``execute`` acked."""
        for index in self.others:
            self.fail(index, failure)

    def fail_open(self, failure: Failure) -> None:
        """Mark all tuples as failed that were neither acked nor failed."""
        for index in np.flatnonzero(self.marks(OPEN)):
            self.fail(int(index), failure)

    def marks(self, state: int) -> NDArray[np.bool_]:
        """Which tuples are in this state."""
        marks: NDArray[np.bool_] = np.frombuffer(bytes(self.status), np.uint8) == state
        return marks

    def roots_in(self, state: int) -> NDArray[np.uint64]:
        """The roots of the tuples in this state."""
        indexes = np.flatnonzero(self.marks(state))
        return self.lineage.roots[self.lineage.pairs_of(indexes)[1]]

    def notes(self) -> list[Note]:
        """The failed roots, with the first reason of each."""
        found: dict[int, Failure] = {}
        for index, failure in sorted(self.failures.items()):
            for root in self.lineage.roots_of(index):
                found.setdefault(root, failure)
        return [Note(root, 1, failure) for root, failure in sorted(found.items())]


def _rows(packet: Packet) -> Iterator[tuple[Any, ...]]:
    columns = [column.to_list() for column in packet.columns()]
    return zip(*columns, strict=True) if columns else iter([()] * packet.head.count)
