"""Places of messages: partition and offset, as far as a split's own data tells them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sparkstorm.components.spout import Split
from sparkstorm.sources.planned import runs_of

__all__ = ["Place", "Spans", "place_of", "spans_of"]

Spans = Sequence[tuple[int, int]]
"""Half-open ranges of positions in a split."""


class Place(NamedTuple):
    """The place of a split.

    Attributes:
        partition: a Kafka partition as ``topic/number``, or a file; None if the data names none.
        base: the offset, or the number of the line, at position 0; None if there is none.
    """

    partition: str | None = None
    base: int | None = None


def place_of(data: Mapping[str, Any]) -> Place:
    """Return the place that a split's data, or a letter's source, tells.

    >>> place_of({"topic": "orders", "partition": 3, "start": 100})
    Place(partition='orders/3', base=100)
    >>> place_of({"path": "in.txt", "line": 7})
    Place(partition='in.txt', base=8)
    """
    if "topic" in data and "partition" in data:
        return Place(f"{data['topic']}/{data['partition']}", _number(data.get("start")))
    if "path" in data:
        line = _number(data.get("line"))
        return Place(str(data["path"]), None if line is None else line + 1)
    return Place()


def spans_of(split: Split, chosen: Sequence[int] | None = None) -> Spans:
    """Return the positions of a split's messages, or of the chosen ones, in the whole split."""
    if split.only is None:
        return [(0, split.count)] if chosen is None else _runs(chosen)
    return _runs(split.only if chosen is None else [split.only[place] for place in chosen])


def _runs(places: Sequence[int]) -> Spans:
    return runs_of(np.array(places, np.int64)) if places else []


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None
