"""The inbox: the tuples that a task received in a batch, and the fate of each."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.anchors import NO_PARENT, Parent, parent_of_list
from sparkstorm.acking.failed import Causes, FailedRoots
from sparkstorm.acking.groves import Groves, has_groves
from sparkstorm.acking.ids import GROVE, U64
from sparkstorm.acking.lineage import Lineage
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.columns import rows_of
from sparkstorm.packets.packet import Packet
from sparkstorm.planning.plan import Plan
from sparkstorm.tuples import Fields, Tuple
from sparkstorm.verdicts import Failure

__all__ = ["ACKED", "FAILED", "OPEN", "Inbox", "PacketOrigin"]

OPEN, ACKED, FAILED = 0, 1, 2
"""The fate of a tuple, a byte each."""


@final
class PacketOrigin:
    """The facts shared by the tuples of a packet (:class:`sparkstorm.tuples.Origin`)."""

    __slots__ = ("component", "inbox", "index_of", "names", "stream", "task")

    def __init__(self, inbox: "Inbox", fields: Fields, component: str, stream: str, task: int):
        self.inbox = inbox
        self.index_of = fields.index_of
        self.names = fields.names
        self.component = component
        self.stream = stream
        self.task = task

    def identity(self, index: int) -> str:
        """Return the tuple's id as text; empty for an untracked tuple."""
        shares = self.inbox.pairs_of(index)[1]
        return str(shares[0]) if shares and shares[0] else ""

    def attempt(self, index: int) -> int:
        """Return the attempt number of the tuple's message."""
        return self.inbox.attempt(index)


class _Adopted(NamedTuple):
    """A tuple of an earlier batch: its roots with their shares, and its attempt."""

    roots: tuple[int, ...]
    shares: tuple[int, ...]
    attempt: int


@final
class Inbox:
    """The tuples of a task in a batch, numbered in the order of their execution.

    The first ``received`` tuples came in packets. Behind them come the *adopted* tuples: the task
    held them since an earlier batch and has asked for them.

    Attributes:
        lineage: the lineage of the received tuples.
        status: the fate of each tuple.
        others: tuples acked by the running ``execute`` beside its own input; the task takes these
            acks back if the call raises.
        unread: for each tuple that could not be read, and was not executed, the reason.
        anchor_lists: the inputs of tuples emitted with several anchors, each list once.
        resets: the tuples whose time-out starts anew.
    """

    __slots__ = (
        "_adopted",
        "_attempts",
        "_causes",
        "_fields",
        "_packets",
        "anchor_lists",
        "batch",
        "failures",
        "groves",
        "lineage",
        "others",
        "received",
        "resets",
        "status",
        "task",
        "unread",
    )

    def __init__(
        self,
        packets: Sequence[Packet],
        task: int,
        batch: BatchInfo,
        groves: Groves | None = None,
    ) -> None:
        self._packets = packets
        self.groves = Groves() if groves is None else groves
        self.task = task
        self.batch = batch
        self.lineage = Lineage.concat([packet.lineage() for packet in packets])
        self.received = len(self.lineage)
        # Bytes, because a whole inbox is acked or searched at once.
        self.status = bytearray(self.received)
        self._adopted: list[_Adopted] = []
        self._attempts: dict[int, int] = {}
        self._fields: dict[tuple[str, ...], Fields] = {}
        self.anchor_lists: list[tuple[int, ...]] = []
        self.others: list[int] = []
        self.failures: dict[int, Failure] = {}
        self._causes = Causes()
        self.resets: list[int] = []
        self.unread: dict[int, str] = {}

    @classmethod
    def empty(cls) -> "Inbox":
        """Return an inbox without tuples."""
        return cls((), 0, BatchInfo(number=-1))

    def __len__(self) -> int:
        return len(self.status)

    def adopt(self, roots: tuple[int, ...], shares: tuple[int, ...], attempt: int) -> int:
        """Add a tuple held since an earlier batch; return its position."""
        self._adopted.append(_Adopted(roots, shares, attempt))
        self.status.append(OPEN)
        return len(self.status) - 1

    def with_adopted(self) -> Lineage:
        """Return the lineage of all tuples, the adopted included."""
        if not self._adopted:
            return self.lineage
        counts = [len(one.roots) for one in self._adopted]
        offsets = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        adopted = Lineage(
            np.array([root for one in self._adopted for root in one.roots], np.uint64),
            np.array([share for one in self._adopted for share in one.shares], np.uint64),
            offsets,
        )
        return Lineage.concat([self.lineage, adopted.simplified()])

    def pairs_of(self, index: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the roots (or groves) of a tuple, and its share of each."""
        if index < self.received:
            return self.lineage.pairs_at(index)
        adopted = self._adopted[index - self.received]
        return adopted.roots, adopted.shares

    def roots_of(self, index: int) -> U64:
        """Return the roots of a tuple."""
        return self.groves.roots_of(np.array(self.pairs_of(index)[0], np.uint64))

    def attempt(self, index: int) -> int:
        """Return the attempt number of a tuple's message."""
        if index >= self.received:
            return self._adopted[index - self.received].attempt
        return max((self._attempt_of(root) for root in self.pairs_of(index)[0]), default=1)

    def fields(self, names: tuple[str, ...]) -> Fields:
        """Return the fields of these names: the same object for all tuples of the batch."""
        found = self._fields.get(names)
        if found is None:
            found = self._fields[names] = Fields(names)
        return found

    def deliveries(self, plan: Plan) -> Iterator[tuple[PacketOrigin, int, Iterator[Any]]]:
        """Decode packet by packet: yield the origin, the first tuple's position, and the values.

        The caller makes the tuples, each when its turn comes, and skips the ``unread``: this is the
        innermost loop of a task.
        """
        start = 0
        for packet in self._packets:
            key = plan.stream_keys[packet.head.stream]
            fields = Fields(plan.stream(key).names)
            origin = PacketOrigin(self, fields, key.component, key.stream, packet.head.source)
            columns, unread = packet.read()
            for row, (column, why) in unread.items():
                field = fields.names[column]
                self.unread[start + row] = f"stream {str(key)!r}: field {field!r}: {why}"
            yield origin, start, rows_of(columns, packet.count)
            start += packet.count

    @property
    def packets(self) -> Sequence[Packet]:
        """The packets of the received tuples, in order."""
        return self._packets

    def parts(self) -> list[tuple[int, int]]:
        """Return each packet's stream, by its number, and the number of its tuples, in order."""
        return [(packet.head.stream, packet.count) for packet in self._packets]

    def tuples(self, plan: Plan) -> Iterator[Tuple]:
        """Yield all readable tuples."""
        for origin, start, delivered in self.deliveries(plan):
            for index, values in enumerate(delivered, start):
                if index not in self.unread:
                    yield Tuple(values, origin, index)

    def anchors_of(self, parent: Parent) -> tuple[int, ...]:
        """Return the inputs that anchor a tuple with this parent."""
        if parent >= 0:
            return (parent,)
        return () if parent == NO_PARENT else self.anchor_lists[parent_of_list(parent)]

    def ack_rest(self) -> None:
        """Mark all tuples as acked but the failed."""
        self.status[:] = self.status.replace(bytes([OPEN]), bytes([ACKED]))

    def fail(self, index: int, failure: Failure) -> None:
        """Mark a tuple as failed."""
        self.status[index] = FAILED
        # A batch of a million failures must not carry a million texts to the driver.
        self.failures[index] = self._causes.share(failure)

    def unack_others(self) -> list[int]:
        """Reopen the tuples of ``others``, and return them."""
        taken = self.others.copy()
        self.others.clear()
        for index in taken:
            self.status[index] = OPEN
        return taken

    def open_ones(self) -> list[int]:
        """Return the tuples that are neither acked nor failed."""
        found: list[int] = np.flatnonzero(self.marks(OPEN)).tolist()
        return found

    def marks(self, state: int) -> NDArray[np.bool_]:
        """Mark the tuples in this state."""
        marks: NDArray[np.bool_] = np.frombuffer(bytes(self.status), np.uint8) == state
        return marks

    def are_open(self, indexes: NDArray[np.int64]) -> bool:
        """Whether all of these tuples are neither acked nor failed."""
        return not np.frombuffer(self.status, np.uint8)[indexes].any()

    def open_roots(self) -> NDArray[np.uint64]:
        """Return the roots of open tuples that were received; the ledger knows the others."""
        indexes = np.flatnonzero(self.marks(OPEN)[: self.received])
        return self.groves.roots_of(self.lineage.roots[self.lineage.pairs_of(indexes)[1]])

    def reset_roots(self) -> NDArray[np.uint64]:
        """Return the roots whose time-out starts anew."""
        lineage = self.with_adopted()
        pairs = lineage.pairs_of(np.array(self.resets, np.int64))[1]
        return self.groves.roots_of(lineage.roots[pairs])

    def untracked_failed(self) -> int:
        """Return how many failed tuples have no root."""
        return sum(not self.pairs_of(index)[0] for index in self.failures)

    def failed(self) -> FailedRoots:
        """Return the failed roots, each with its first failure."""
        indexes = np.array(sorted(self.failures), np.int64)
        lineage = self.with_adopted()
        position, pair = lineage.pairs_of(indexes)
        causes = [self.failures[index] for index in indexes[position].tolist()]
        found = FailedRoots.first_of_each(lineage.roots[pair], causes)
        if not has_groves(found.roots):
            return found
        single = found.roots < GROVE
        groves = [
            FailedRoots.alike(self.groves[grove], why)
            for grove, why in found.select(~single).items()
        ]
        return FailedRoots.merge([found.select(single), *groves])

    def _attempt_of(self, root: int) -> int:
        if root < GROVE:
            return self.batch.attempt(root)
        found = self._attempts.get(root)
        if found is None:
            found = self._attempts[root] = self.batch.last_attempt(self.groves[root])
        return found
