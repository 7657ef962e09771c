"""The layout of a topology's graph: columns by level, short edges, boxes that do not overlap.

Sugiyama's method, in short: a component stands one column right of the last of its sources; an edge
over several columns gets a place in each column between, so that it passes beside the boxes; each
column is put in the order of its neighbours' mean place, back and forth until that helps no more.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

__all__ = ["Box", "Curve", "Layout", "lay_out"]

WIDTH, HEIGHT = 172, 84
_GAP_X, _GAP_Y = 84, 26
_MARGIN = 16
_SWEEPS = 6

_Place = tuple[str, int]
"""A component in its column, or an edge's place in a column between, named by the edge's ends."""


@final
@dataclass(frozen=True, slots=True)
class Box:
    """The place of a component: its upper left corner."""

    name: str
    x: float
    y: float


@final
@dataclass(frozen=True, slots=True)
class Curve:
    """The way of an edge, as the ``d`` of an SVG path."""

    source: str
    target: str
    path: str


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """A graph with the places of all its parts."""

    width: float
    height: float
    boxes: list[Box]
    curves: list[Curve]


def lay_out(names: Sequence[str], edges: Iterable[tuple[str, str]]) -> Layout:
    """Return the places of components and of the edges between them.

    >>> layout = lay_out(["a", "b"], [("a", "b")])
    >>> [(box.name, box.x, box.y) for box in layout.boxes]
    [('a', 16, 16.0), ('b', 272, 16.0)]
    >>> layout.curves[0].path
    'M188 58C230 58 230 58 272 58'
    """
    known = set(names)
    wanted = [one for one in dict.fromkeys(edges) if set(one) <= known and one[0] != one[1]]
    levels = _levels(names, wanted)
    columns, links = _columns(names, wanted, levels)
    _order(columns, links)
    tall = max((len(column) for column in columns), default=0)
    places = {
        place: (_x(x), _y(y, len(column), tall))
        for x, column in enumerate(columns)
        for y, place in enumerate(column)
    }
    return Layout(
        width=2 * _MARGIN + len(columns) * (WIDTH + _GAP_X) - _GAP_X if columns else 0,
        height=2 * _MARGIN + tall * (HEIGHT + _GAP_Y) - _GAP_Y if columns else 0,
        boxes=[Box(name, *places[name, levels[name]]) for name in names],
        curves=[_curve(edge, levels, places) for edge in wanted],
    )


def _levels(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return the longest way to each component; ways around a circle end after so many steps."""
    levels = dict.fromkeys(names, 0)
    for _ in range(len(names)):
        moved = False
        for source, target in edges:
            if levels[target] <= levels[source] < len(names) - 1:
                levels[target] = levels[source] + 1
                moved = True
        if not moved:
            break
    used = {level: place for place, level in enumerate(sorted(set(levels.values())))}
    return {name: used[level] for name, level in levels.items()}


def _columns(
    names: Sequence[str], edges: Sequence[tuple[str, str]], levels: Mapping[str, int]
) -> tuple[list[list[_Place]], list[tuple[_Place, _Place]]]:
    columns: list[list[_Place]] = [[] for _ in range(max(levels.values(), default=-1) + 1)]
    for name in names:
        columns[levels[name]].append((name, levels[name]))
    links = []
    for edge in edges:
        way = _way(edge, levels)
        for place in way[1:-1]:
            columns[place[1]].append(place)
        links += list(pairwise(way))
    return columns, links


def _way(edge: tuple[str, str], levels: Mapping[str, int]) -> list[_Place]:
    """Return an edge's places from left to right, its components among them."""
    source, target = sorted(edge, key=lambda name: levels[name])
    between = range(levels[source] + 1, levels[target])
    label = "\0".join(edge)
    return [(source, levels[source]), *((label, x) for x in between), (target, levels[target])]


def _order(columns: list[list[_Place]], links: Sequence[tuple[_Place, _Place]]) -> None:
    """Sort each column by the mean place of its neighbours, left ones and right ones in turn."""
    before: dict[_Place, list[_Place]] = {}
    after: dict[_Place, list[_Place]] = {}
    for left, right in links:
        before.setdefault(right, []).append(left)
        after.setdefault(left, []).append(right)
    for sweep in range(_SWEEPS):
        rightwards = sweep % 2 == 0
        near = before if rightwards else after
        order = columns if rightwards else columns[::-1]
        for fixed, column in pairwise(order):
            rank = _ranks(fixed) | _ranks(column)
            column.sort(key=lambda place: _mean(place, near.get(place, ()), rank))


def _ranks(column: Sequence[_Place]) -> dict[_Place, float]:
    return {place: y / len(column) for y, place in enumerate(column)}


def _mean(place: _Place, near: Sequence[_Place], rank: Mapping[_Place, float]) -> float:
    return sum(rank[one] for one in near) / len(near) if near else rank[place]


def _x(column: int) -> float:
    return _MARGIN + column * (WIDTH + _GAP_X)


def _y(place: int, count: int, tall: int) -> float:
    return _MARGIN + (place + (tall - count) / 2) * (HEIGHT + _GAP_Y)


def _curve(
    edge: tuple[str, str], levels: Mapping[str, int], places: Mapping[_Place, tuple[float, float]]
) -> Curve:
    way = _way(edge, levels)
    half = HEIGHT / 2
    path, (x, y) = "", places[way[0]]
    x, y = x + WIDTH, y + half
    path = f"M{x:g} {y:g}"
    for place in way[1:]:
        right, below = places[place][0], places[place][1] + half
        middle = (x + right) / 2
        path += f"C{middle:g} {y:g} {middle:g} {below:g} {right:g} {below:g}"
        if place is not way[-1]:
            path += f"H{right + WIDTH:g}"
        x, y = right + WIDTH, below
    return Curve(*edge, path)
