"""Groves: sets of roots that many tuples have in common, each set kept once.

The results of a window of a million tuples belong to the same million roots. So a result's lineage
names the *grove* of these roots instead: an id, and a share that counts for every root in the
grove. Only the ackers look at single roots; to all other rules (:mod:`shares`) a grove is a root
like any other. A grove's id is a digest of its roots, larger than any root, and the same in every
process.

Cost: a task that anchors m tuples to n inputs handles n roots and m ids, not m * n pairs. A grove's
roots travel once to each task that gets a tuple of the grove. They travel once more, to the ackers,
from each task that acks such a tuple: a task's acks are summed up first (:mod:`anchors`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.ids import GROVE, U64, grove_digests
from sparkstorm.acking.lineage import Indexes, is_ascending
from sparkstorm.acking.shares import Entries

__all__ = ["Groves", "Marking", "Pieces", "has_groves"]

Marking: TypeAlias = Callable[[U64], NDArray[np.bool_]]
"""Answers for each of some roots whether the root is marked."""

_WHOLE = np.zeros(1, np.int64)


@final
@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces of groves: piece i belongs to grove ``ids[i]`` and has the next ``counts[i]`` roots.

    The pieces of one grove stand together, in ascending order; most groves are a single piece.
    """

    ids: U64
    counts: Indexes
    roots: U64


@final
@dataclass(slots=True)
class _Part:
    """The pieces of a grove received so far."""

    digest: int = 0
    roots: list[U64] = field(default_factory=list)


@final
class Groves:
    """The groves known to a task in a batch: ascending roots by the grove's id."""

    __slots__ = ("_known", "_packed", "_parts")

    def __init__(self) -> None:
        self._known: dict[int, U64] = {}
        self._packed: dict[int, bytes] = {}
        self._parts: dict[tuple[int, int], _Part] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, grove: int) -> U64:
        return self._known[grove]

    def plant(self, roots: U64) -> int:
        """Make a grove of ascending roots; return its id."""
        grove = int(grove_digests(roots, _WHOLE)[0]) | GROVE
        self._known.setdefault(grove, roots)
        return grove

    def pack(self, grove: int) -> bytes:
        """Return a grove's roots as bytes.

        Each call returns the same object, so a pickle of many records holds the bytes once.
        """
        data = self._packed.get(grove)
        if data is None:
            data = self._packed[grove] = self._known[grove].tobytes()
        return data

    def unpack(self, grove: int, data: bytes) -> None:
        """Add a grove from the bytes that :meth:`pack` returned in an earlier batch."""
        self._packed.setdefault(grove, data)
        if grove not in self._known:
            self._known[grove] = np.frombuffer(data, np.uint64)

    def learn(self, source: int, pieces: Pieces) -> None:
        """Add the next pieces from a task; a grove is known once all of its pieces are here."""
        if not len(pieces.ids):
            return
        # Where the id changes, the next grove begins; the inverted first id makes the first one
        # differ.
        heads = np.flatnonzero(np.diff(pieces.ids, prepend=~pieces.ids[:1]))
        starts = (np.cumsum(pieces.counts) - pieces.counts)[heads]
        edges = [*starts.tolist(), len(pieces.roots)]
        digests = grove_digests(pieces.roots, starts).tolist()
        for number, grove in enumerate(pieces.ids[heads].tolist()):
            if grove not in self._known:
                roots = pieces.roots[edges[number] : edges[number + 1]]
                self._add(source, grove, digests[number], roots)

    def knows(self, roots: U64) -> NDArray[np.bool_]:
        """Mark the roots, and the groves whose roots are known."""
        unknown = [grove for grove in _groves_in(roots) if grove not in self._known]
        return ~np.isin(roots, np.array(unknown, np.uint64))

    def marked(self, roots: U64, marking: Marking) -> NDArray[np.bool_]:
        """Mark the roots that ``marking`` marks, and the groves with such a root."""
        found = [grove for grove in _groves_in(roots) if marking(self._known[grove]).any()]
        marks = marking(roots)
        return marks | np.isin(roots, np.array(found, np.uint64)) if found else marks

    def roots_of(self, roots: U64) -> U64:
        """Return the given roots and the roots of the given groves, ascending, each once."""
        if not has_groves(roots):
            return roots if is_ascending(roots) else np.unique(roots)
        groves = [self._known[grove] for grove in _groves_in(roots)]
        return np.unique(np.concatenate([roots[roots < GROVE], *groves]))

    def expand(self, entries: Entries) -> Entries:
        """Return entries of roots alone, for ackers to add up; a root may occur several times."""
        if not has_groves(entries.roots):
            return entries
        single = entries.roots < GROVE
        groves = [self._known[grove] for grove in entries.roots[~single].tolist()]
        deltas = np.repeat(entries.deltas[~single], [len(roots) for roots in groves])
        return Entries(
            np.concatenate([entries.roots[single], *groves]),
            np.concatenate([entries.deltas[single], deltas]),
        )

    def pieces_of(self, roots: U64) -> Pieces | None:
        """Return the groves among the roots, for a task that gets tuples of them.

        None if no root is a grove.
        """
        ids = _groves_in(roots)
        if not ids:
            return None
        groves = [self._known[grove] for grove in ids]
        counts = np.array([len(grove) for grove in groves], np.int64)
        return Pieces(np.array(ids, np.uint64), counts, np.concatenate(groves))

    def __repr__(self) -> str:
        return f"Groves({len(self)} of {sum(map(len, self._known.values()))} roots)"

    def _add(self, source: int, grove: int, digest: int, roots: U64) -> None:
        part = self._parts.setdefault((source, grove), _Part())
        part.digest ^= digest
        part.roots.append(roots)
        # A grove's id is the digest of its roots, so the last piece shows by itself.
        if part.digest | GROVE == grove:
            self._known[grove] = np.concatenate(part.roots)
            del self._parts[source, grove]


def has_groves(roots: U64) -> bool:
    """Whether any of the roots is a grove."""
    return bool(roots.max(initial=0) >= GROVE)


def _groves_in(roots: U64) -> list[int]:
    """Return the groves among the roots, each once, ascending."""
    found: list[int] = np.unique(roots[roots >= GROVE]).tolist() if has_groves(roots) else []
    return found
