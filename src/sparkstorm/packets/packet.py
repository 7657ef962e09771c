"""Packets: all that a task sends to another in one go; encoded here and in ``encoding``.

Layout, little-endian: a fixed head, then length-prefixed parts, each padded to eight bytes.

=========  ==================================================================================
DATA       lineage (by ``tracking``), then one or two parts per column: encoding, 7 zeros, bytes
ENTRIES    roots, deltas                           contributions to ack vals
HOLD       roots                                   roots of which a bolt holds a tuple
RESET      roots                                   roots whose time-out starts anew
NOTES      JSON, roots, numbers                    failed roots: the causes, and each root's cause
FATAL      JSON failure                            a fault that must stop the topology
OUTCOME    bytes                                   an acker's result, for the driver
ENDED      roots                                   roots that ended while a task holds tuples
GROVES     ids, counts, firsts, steps              pieces of groves that DATA packets name
=========  ==================================================================================

Packets are reproducible: the same content gives the same bytes, and no time goes in. Roots and
other whole numbers are narrow: each takes as few bytes as the largest needs, counted from
``base``. Spark copies every byte some ten times on its way.
"""

import pickle
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import final

import numpy as np

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.groves import Pieces, has_groves
from sparkstorm.acking.ids import GROVE, U64, seeds
from sparkstorm.acking.lineage import Lineage
from sparkstorm.acking.shares import Entries
from sparkstorm.errors import InternalError
from sparkstorm.packets.columns import (
    CoderError,
    Column,
    ObjectColumn,
    Rows,
)
from sparkstorm.packets.encoding import Loads, decode_columns, encode_column, narrow, widen
from sparkstorm.packets.failures import pack_failed, unpack_failed
from sparkstorm.packets.pickles import Unread, load_each
from sparkstorm.texts.user_errors import is_of_value

__all__ = [
    "DRIVER",
    "ENGINE",
    "Body",
    "Kind",
    "Packet",
    "PacketHead",
    "PacketWriter",
    "read_head",
]

_HEAD = struct.Struct("<BBBxHHiiIIQ")
_VERSION = 1

_LOW_BITS = 32
"""The bits of a sequence number in the head's lower part; the rest stands further up.

Each load of a task has a million numbers of its own, and a batch may have more than 4,095 loads.
"""

DRIVER = 0
"""The target of packets for the driver: taps, outcomes. Task numbers start at 1."""

ENGINE = -1
"""The source of the engine's own packets: Storm's number of the system's task."""


class Kind(IntEnum):
    """The kind of a packet's content."""

    DATA = 1
    ENTRIES = 2
    HOLD = 3
    RESET = 4
    NOTES = 5
    FATAL = 6
    OUTCOME = 7
    ENDED = 8
    GROVES = 9
    TRACED = 10


class Tracking(IntEnum):
    """The form of the lineage in a DATA packet."""

    NONE = 0
    """Untracked: no ids, no entries for the ackers."""
    SEEDED = 1
    """Consecutive roots from ``base`` with their seeds as shares: the packet carries neither."""
    SIMPLE = 2
    """A root and a share per tuple."""
    MULTI = 3
    """Any number of roots per tuple."""


@final
@dataclass(frozen=True, slots=True)
class PacketHead:
    """The fixed part: enough to sort packets and to pass them on unopened."""

    kind: Kind
    tracking: Tracking
    stream: int
    target: int
    source: int
    sequence: int
    count: int
    base: int

    @property
    def order(self) -> tuple[int, int]:
        """The sort key of packets: tasks do not depend on Spark's order of arrival."""
        return self.source, self.sequence


def read_head(data: bytes) -> PacketHead:
    """Decode the head of a packet."""
    fields = _HEAD.unpack_from(data)
    version, kind, tracking, stream, high, target, source, low, count, base = fields
    # Executors of another version of the package could otherwise misread packets quietly.
    if version != _VERSION:
        raise InternalError(f"a packet of version {version} came in; this is {_VERSION}")
    sequence = high << _LOW_BITS | low
    return PacketHead(Kind(kind), Tracking(tracking), stream, target, source, sequence, count, base)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """A packet, decoded down to its parts; the method for the packet's kind decodes the rest.

    A DATA packet shows the tuples in ``kept`` alone; None for all.
    """

    head: PacketHead
    parts: tuple[memoryview, ...]
    kept: Rows | None = None

    @classmethod
    def decode(cls, data: bytes) -> "Packet":
        """Split a packet into its head and parts, without copying."""
        return cls(head=read_head(data), parts=tuple(_split(memoryview(data)[_HEAD.size :])))

    @property
    def count(self) -> int:
        """The number of tuples that a DATA packet shows."""
        return self.head.count if self.kept is None else len(self.kept)

    def keep(self, rows: Rows) -> "Packet":
        """Return the DATA packet with these tuples alone, without decoding any value."""
        return replace(self, kept=rows if self.kept is None else self.kept[rows])

    @property
    def names_groves(self) -> bool:
        """Whether a DATA packet's tuples belong to groves."""
        if self.head.tracking not in (Tracking.SIMPLE, Tracking.MULTI):
            return False
        is_narrow = len(self.parts[0]) < len(self.parts[1])  # too narrow for a root and a grove
        return not (is_narrow and self.head.base < GROVE) and has_groves(self._roots())

    def lineage(self) -> Lineage:
        """Return the lineage of a DATA packet's tuples."""
        lineage = self._lineage()
        return lineage if self.kept is None else lineage.take(self.kept)

    def columns(self) -> list[Column]:
        """Return the columns of a DATA packet."""
        return self._columns(pickle.loads)

    def read(self) -> tuple[list[Column], dict[int, tuple[int, str]]]:
        """Return the columns, and for each unreadable row its first bad column and the reason."""
        try:
            return self.columns(), {}
        except BaseException as error:  # of any user's class
            if not is_of_value(error):
                raise
            columns = self._columns(load_each)
        unread: dict[int, tuple[int, str]] = {}
        for number, column in enumerate(columns):
            if isinstance(column, ObjectColumn):
                for row, value in enumerate(column.values):
                    if isinstance(value, Unread):
                        unread.setdefault(row, (number, value.why))
        return columns, unread

    def _lineage(self) -> Lineage:
        match self.head.tracking:
            case Tracking.SEEDED:
                roots = np.arange(self.head.count, dtype=np.uint64) + np.uint64(self.head.base)
                return Lineage(roots, seeds(roots))
            case Tracking.SIMPLE:
                return Lineage(self._roots(), _u64(self.parts[1]))
            case Tracking.MULTI:
                offsets = np.frombuffer(self.parts[2], np.int64)
                return Lineage(self._roots(), _u64(self.parts[1]), offsets)
            case _:
                return Lineage.untracked(self.head.count)

    def _columns(self, load: Loads) -> list[Column]:
        skip = {Tracking.SIMPLE: 2, Tracking.MULTI: 3}.get(self.head.tracking, 0)
        columns = list(decode_columns(self.parts[skip:], self.head.count, load))
        return columns if self.kept is None else [column.take(self.kept) for column in columns]

    def roots(self) -> U64:
        """Return the roots of a HOLD, RESET, ENDED or TRACED packet."""
        return _u64(self.parts[0])

    def entries(self) -> Entries:
        """Return the entries of an ENTRIES packet."""
        count = self.head.count
        roots = widen(self.parts[0], count).astype(np.uint64) + np.uint64(self.head.base)
        deltas = _u64(self.parts[1])
        if len(self.parts) > 2:
            deltas = np.repeat(deltas, widen(self.parts[2], len(deltas)))
        return Entries(roots, deltas)

    def pieces(self) -> Pieces:
        """Return the pieces of a GROVES packet."""
        ids, firsts = _u64(self.parts[0]), _u64(self.parts[2])
        counts = widen(self.parts[1], len(ids)).astype(np.int64)
        steps = np.cumsum(widen(self.parts[3], int(counts.sum())), dtype=np.uint64)
        before = firsts - steps[np.cumsum(counts) - counts]
        return Pieces(ids, counts, steps + np.repeat(before, counts))

    def failed(self) -> FailedRoots:
        """Return the failed roots of a NOTES packet."""
        return unpack_failed(self.parts)

    def payload(self) -> bytes:
        """Return the bytes of a FATAL packet."""
        return bytes(self.parts[0])

    def _roots(self) -> U64:
        pairs = len(self.parts[1]) // 8  # as many as there are shares or deltas
        return widen(self.parts[0], pairs).astype(np.uint64) + np.uint64(self.head.base)


@final
@dataclass(frozen=True, slots=True)
class Body:
    """The encoded columns of ``count`` tuples."""

    count: int
    parts: list[bytes]

    @classmethod
    def encode(cls, columns: Sequence[Column], count: int) -> "Body":
        """Encode columns."""
        return cls(count, [part for column in columns for part in encode_column(column)])

    @classmethod
    def of_fields(cls, columns: Mapping[str, Column], count: int) -> "Body":
        """Encode columns by field.

        Raises:
            CoderError: some values cannot be sent; the message names the field.
        """
        parts: list[bytes] = []
        for name, column in columns.items():
            try:
                parts += encode_column(column)
            except CoderError as error:
                raise error.within(f"field {name!r}") from None
        return cls(count, parts)

    @property
    def nbytes(self) -> int:
        """The size of the parts together."""
        return sum(map(len, self.parts))


@final
@dataclass(slots=True)
class PacketWriter:
    """Encodes the packets of a task in a batch, and numbers them in order."""

    source: int
    sequence: int = 0

    def data(self, *, stream: int, target: int, body: Body, lineage: Lineage) -> bytes:
        """Encode tuples of a stream for a task."""
        tracking, base, parts = _encode_lineage(lineage)
        return self._write(
            Kind.DATA, parts + body.parts, tracking, stream, target, body.count, base
        )

    def groves(self, target: int, pieces: Pieces) -> bytes:
        """Encode pieces of groves for a task; each piece has a root at least."""
        starts = np.cumsum(pieces.counts) - pieces.counts
        steps = np.diff(pieces.roots, prepend=pieces.roots[:1])
        # The first root of each piece travels whole, in a part of its own.
        steps[starts] = 0
        parts = [
            pieces.ids.tobytes(),
            narrow(pieces.counts),
            pieces.roots[starts].tobytes(),
            narrow(steps),
        ]
        return self._write(Kind.GROVES, parts, target=target, count=len(pieces.ids))

    def entries(self, target: int, entries: Entries) -> bytes:
        """Encode contributions for an acker. A run of equal deltas (a grove's) is sent once."""
        base, roots = _narrow_roots(entries.roots)
        parts = [roots, *_encode_deltas(entries.deltas)]
        return self._write(Kind.ENTRIES, parts, target=target, count=len(entries), base=base)

    def roots(self, kind: Kind, target: int, roots: U64) -> bytes:
        """Encode a HOLD, RESET, ENDED or TRACED packet."""
        return self._write(kind, [roots.tobytes()], target=target, count=len(roots))

    def notes(self, target: int, failed: FailedRoots) -> bytes:
        """Encode the failed roots for an acker."""
        return self._write(Kind.NOTES, pack_failed(failed), target=target, count=len(failed))

    def for_driver(self, kind: Kind, parts: Sequence[bytes]) -> bytes:
        """Encode an OUTCOME or FATAL packet for the driver."""
        return self._write(kind, parts, target=DRIVER)

    def _write(
        self,
        kind: Kind,
        parts: Sequence[bytes],
        tracking: Tracking = Tracking.NONE,
        stream: int = 0,
        target: int = DRIVER,
        count: int = 0,
        base: int = 0,
    ) -> bytes:
        high, low = divmod(self.sequence, 1 << _LOW_BITS)
        head = _HEAD.pack(
            _VERSION, kind, tracking, stream, high, target, self.source, low, count, base
        )
        # The number orders a task's packets at the receiver.
        self.sequence += 1
        return b"".join([head, *(piece for part in parts for piece in _padded(part))])


def _encode_deltas(deltas: U64) -> list[bytes]:
    starts = np.flatnonzero(np.diff(deltas, prepend=~deltas[:1]))
    # Short runs cost more with their lengths than the deltas alone.
    if 2 * len(starts) > len(deltas):
        return [deltas.tobytes()]
    return [deltas[starts].tobytes(), narrow(np.diff(starts, append=len(deltas)))]


def _encode_lineage(lineage: Lineage) -> tuple[Tracking, int, list[bytes]]:
    if not lineage.is_tracked:
        return Tracking.NONE, 0, []
    if lineage.offsets is None:
        first, last = int(lineage.roots[0]), int(lineage.roots[-1])
        # The usual lineage of a spout's messages: 16 bytes a tuple saved.
        if last - first == len(lineage) - 1 and _is_seeded(lineage):
            return Tracking.SEEDED, first, []
    base, roots = _narrow_roots(lineage.roots)
    pairs = [roots, lineage.shares.tobytes()]
    if lineage.offsets is not None:
        return Tracking.MULTI, base, [*pairs, lineage.offsets.tobytes()]
    return Tracking.SIMPLE, base, pairs


def _is_seeded(lineage: Lineage) -> bool:
    roots = lineage.roots
    return bool(np.all(roots[1:] - roots[:-1] == 1)) and np.array_equal(
        lineage.shares, seeds(roots)
    )


def _padded(part: bytes) -> tuple[bytes, bytes, bytes]:
    return len(part).to_bytes(8, "little"), part, bytes(-len(part) % 8)


def _split(body: memoryview) -> Iterator[memoryview]:
    at = 0
    while at < len(body):
        length = int.from_bytes(body[at : at + 8], "little")
        yield body[at + 8 : at + 8 + length]
        at += 8 + length + (-length % 8)


def _narrow_roots(roots: U64) -> tuple[int, bytes]:
    """Return the smallest root, and the distances of all roots from the smallest, as bytes."""
    base = int(roots.min()) if len(roots) else 0
    return base, narrow(roots - np.uint64(base))


def _u64(part: memoryview) -> U64:
    return np.frombuffer(part, np.uint64)
