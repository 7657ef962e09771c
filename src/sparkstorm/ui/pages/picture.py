"""The picture of a running topology: boxes and edges with how busy, how fast and how faulty."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import final

from sparkstorm.control.views import ComponentMetricsView, MessageView, TopologyView, WindowView
from sparkstorm.ui.pages.graph import HEIGHT, WIDTH, Layout, lay_out

__all__ = ["Edge", "Node", "Picture", "picture_of"]

_THICKEST = 7.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A component in the picture.

    Attributes:
        busy: the share of the time in which the busiest task is busy; None for spouts.
        rate: tuples per second: executed by a bolt, emitted by a spout.
        failing: the share of its tuples that fail.
        held: unfinished messages of a spout, or held by a bolt.
    """

    name: str
    kind: str
    tasks: int
    x: float
    y: float
    busy: float | None
    rate: float
    failing: float
    failed: int
    held: int

    @property
    def tone(self) -> str:
        """``bad`` if tuples fail, ``full`` if a task is nearly always busy, else ``fine``."""
        if self.failing >= 0.005:
            return "bad"
        return "full" if self.busy is not None and self.busy >= 0.8 else "fine"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A subscription: its way, width, and a text for whoever asks."""

    path: str
    width: float
    text: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """All of a topology, in the units of SVG."""

    width: float
    height: float
    nodes: list[Node]
    edges: list[Edge]
    box: tuple[float, float] = (WIDTH, HEIGHT)


def picture_of(
    topology: TopologyView,
    recent: WindowView,
    total: WindowView,
    before: WindowView | None,
    messages: Iterable[MessageView],
) -> Picture:
    """Draw a topology: failures of the last ten minutes, rates of the last seconds."""
    parts = topology.components
    layout = _layout(
        tuple(part.id for part in parts),
        tuple((one.component, part.id) for part in parts for one in part.inputs),
    )
    rates = rates_of(total, before)
    held = _held(messages)
    metrics = {one.component: one for one in recent.components}
    nodes = [
        _node(part.id, part.kind, len(part.tasks), box.x, box.y, metrics, rates, held)
        for part, box in zip(parts, layout.boxes, strict=True)
    ]
    return Picture(
        width=layout.width,
        height=layout.height,
        nodes=nodes,
        edges=_edges(topology, layout, rates),
    )


@lru_cache(maxsize=64)
def _layout(names: tuple[str, ...], edges: tuple[tuple[str, str], ...]) -> Layout:
    """Return the layout of a topology; the page draws the same ones again and again."""
    return lay_out(names, edges)


def rates_of(total: WindowView, before: WindowView | None) -> dict[str, float]:
    """Return tuples per second: what bolts execute, what spouts emit."""
    old = {} if before is None else {one.component: _work(one) for one in before.components}
    secs = max(total.secs - (before.secs if before else 0.0), 1e-3)
    return {
        one.component: max(0.0, (_work(one) - old.get(one.component, 0)) / secs)
        for one in total.components
    }


def _work(one: ComponentMetricsView) -> int:
    return one.executed or one.emitted


def _held(messages: Iterable[MessageView]) -> Counter[str]:
    held: Counter[str] = Counter()
    for message in messages:
        held[message.spout] += 1
        held.update(set(message.held_by) - {message.spout})
    return held


def _node(
    name: str,
    kind: str,
    tasks: int,
    x: float,
    y: float,
    metrics: dict[str, ComponentMetricsView],
    rates: dict[str, float],
    held: Counter[str],
) -> Node:
    mine = metrics.get(name)
    ended = mine.acked + mine.failed if mine else 0
    return Node(
        name=name,
        kind=kind,
        tasks=tasks,
        x=x,
        y=y,
        busy=mine.capacity if mine else None,
        rate=rates.get(name, 0.0),
        failing=mine.failed / ended if mine and ended else 0.0,
        failed=mine.failed if mine else 0,
        held=held[name],
    )


def _edges(topology: TopologyView, layout: Layout, rates: dict[str, float]) -> list[Edge]:
    texts: dict[tuple[str, str], list[str]] = {}
    for part in topology.components:
        for one in part.inputs:
            text = f"{one.component} → {part.id}: {one.stream}, {one.grouping}"
            texts.setdefault((one.component, part.id), []).append(text)
    most = max(rates.values(), default=0.0) or 1.0
    return [
        Edge(
            path=curve.path,
            width=round(1 + (_THICKEST - 1) * math.sqrt(rates.get(curve.source, 0.0) / most), 1),
            text="\n".join(texts[curve.source, curve.target]),
        )
        for curve in layout.curves
    ]
