"""Pieces: the answers of the driver, each one row or many rows that differ by their position."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from sparkstorm.spark.tables.places import Place, Spans

__all__ = ["Piece"]


@final
@dataclass(frozen=True, slots=True)
class Piece:
    """One row; with ``spans``, a row for each position, with position, partition and offset added.

    A batch of a million messages is a few pieces, and the executors make the rows.

    Attributes:
        values: the row, or its beginning.
        spans: the positions.
        place: the partition, and the offset at position 0.
    """

    values: Sequence[Any]
    spans: Spans | None = None
    place: Place = field(default_factory=Place)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows."""
        if self.spans is None:
            yield tuple(self.values)
            return
        partition, base = self.place
        for start, stop in self.spans:
            for position in range(start, stop):
                offset = None if base is None else base + position
                yield (*self.values, position, partition, offset)

    def to_json(self) -> bytes:
        """Return the piece as bytes for :meth:`from_json`; a time is seconds since 1970."""
        spans = None if self.spans is None else list(self.spans)
        return json.dumps([list(self.values), spans, list(self.place)]).encode()

    @classmethod
    def from_json(cls, data: bytes) -> "Piece":
        """Build a piece from :meth:`to_json`'s bytes."""
        values, spans, place = json.loads(data)
        return cls(
            values, None if spans is None else [tuple(pair) for pair in spans], Place(*place)
        )
