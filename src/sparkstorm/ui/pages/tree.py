"""The rows of an attempt's tree: each tuple below its first anchor, with a bar for its time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from sparkstorm.control.views import AttemptView, NodeView

__all__ = ["Row", "rows_of"]

_MOST_ROWS = 200
_DEEPEST = 12
_LEAST = 1.5
"""The narrowest bar, in percent."""


@final
@dataclass(frozen=True, slots=True)
class Row:
    """A tuple in the tree.

    Attributes:
        node: the tuple.
        depth: how far it is indented.
        start: where its bar begins, in percent of all tuples' time; None without a time.
        width: the bar's width.
        others: the tuples that it is anchored to as well.
    """

    node: NodeView
    depth: int
    start: float | None = None
    width: float = 0.0
    others: list[str] = field(default_factory=list)


def rows_of(attempt: AttemptView) -> list[Row]:
    """Return the rows of an attempt, each tuple once, parents first; empty without a tree."""
    if attempt.tree is None:
        return []
    nodes = attempt.tree.nodes
    known = {node.id for node in nodes}
    below: dict[str, list[NodeView]] = {}
    for node in nodes:
        first = next((one for one in node.parents if one in known and one != node.id), "")
        below.setdefault(first, []).append(node)
    began, length = _span(nodes)
    rows = []
    # Tuples that are anchored in a circle are under no root; they come last.
    order = _walk(below, nodes)
    for node, depth in order[:_MOST_ROWS]:
        start, width = _bar(node, began, length)
        rows.append(Row(node, min(depth, _DEEPEST), start, width, node.parents[1:]))
    return rows


def _walk(
    below: Mapping[str, Sequence[NodeView]], nodes: Sequence[NodeView]
) -> list[tuple[NodeView, int]]:
    found: dict[str, tuple[NodeView, int]] = {}
    for start in [*below.get("", ()), *nodes]:
        waiting = [(start, 0)]
        while waiting:
            node, depth = waiting.pop()
            if node.id not in found:
                found[node.id] = node, depth
                waiting += [(one, depth + 1) for one in reversed(below.get(node.id, ()))]
    return list(found.values())


def _span(nodes: Sequence[NodeView]) -> tuple[float, float]:
    """Return when the first tuple was executed, and the time until the last one was done."""
    times = [(node.at, node.at + (node.secs or 0.0)) for node in nodes if node.at is not None]
    began = min((start for start, _ in times), default=0.0)
    return began, max(max((end for _, end in times), default=0.0) - began, 1e-9)


def _bar(node: NodeView, began: float, length: float) -> tuple[float | None, float]:
    if node.at is None:
        return None, 0.0
    start = min(100 * (node.at - began) / length, 100 - _LEAST)
    width = max(100 * (node.secs or 0.0) / length, _LEAST)
    return round(start, 2), round(min(width, 100 - start), 2)
