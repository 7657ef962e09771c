"""Tracing: the tuples of a few chosen messages, as nodes of their trees.

A task tells of each copy that it emits (where to, and from which inputs), and of each input that it
got (its values, and its fate). Both name a tuple by its share of the root and its receiving task,
so the driver puts the two together. Nothing is traced unless the driver asks for a root; the arrays
that name roots are searched once for each task and batch.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.anchors import Anchors
from sparkstorm.acking.lineage import Indexes, Lineage
from sparkstorm.acking.tally import locate
from sparkstorm.control.views import NodeState, NodeView
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.columns import Column, rows_of
from sparkstorm.packets.inbox import ACKED, FAILED, Inbox
from sparkstorm.planning.plan import Plan
from sparkstorm.tasks.measuring import Timings
from sparkstorm.texts.showing import shown
from sparkstorm.texts.user_errors import users_line

__all__ = ["Traced", "followed_rows", "trace_children", "trace_inputs"]

Traced = tuple[int, NodeView]
"""A root, and a tuple of its tree."""

_MOST = 500
"""The most tuples that a task tells of in a batch."""

_STATES: dict[int, NodeState] = {ACKED: "acked", FAILED: "failed"}


def trace_children(
    plan: Plan,
    batch: BatchInfo,
    task: int,
    anchors: Anchors,
    children: Lineage,
    targets: Sequence[tuple[int, int, Indexes]],
) -> list[Traced]:
    """Return the copies that a task emitted for traced roots.

    Args:
        plan: the topology's plan.
        batch: names the traced roots.
        task: the emitting task.
        anchors: its inputs.
        children: the lineage of all copies.
        targets: for consecutive copies the stream's number, the receiving task, and the parents.
    """
    if not batch.traced:
        return []
    source = plan.component_of(task)
    from_spout = plan.spec(source).is_spout
    pairs = np.flatnonzero(locate(batch.traced, children.roots) >= 0)[:_MOST]
    owners = children.owners()[pairs]
    ends = np.cumsum([len(parents) for _, _, parents in targets])
    found: list[Traced] = []
    for pair, copy in zip(pairs.tolist(), owners.tolist(), strict=True):
        which = int(np.searchsorted(ends, copy, side="right"))
        stream, target, parents = targets[which]
        root = int(children.roots[pair])
        place = copy - (int(ends[which]) - len(parents))
        above = () if from_spout else _names_of(anchors, parents[place : place + 1], root, task)
        found.append(
            (
                root,
                NodeView(
                    id=_name(int(children.shares[pair]), target),
                    parents=[*above],
                    source=source,
                    source_task=task,
                    stream=plan.stream_keys[stream].stream,
                    component=plan.component_of(target),
                    task=target,
                ),
            )
        )
    return found


def followed_rows(batch: BatchInfo, columns: Mapping[str, Column]) -> Indexes:
    """Return the rows with a value that contains a followed text, the first few of them."""
    found: set[int] = set()
    for column in columns.values() if batch.followed else ():
        for row, value in enumerate(column.to_list()):
            text = value if isinstance(value, str) else shown(value)
            if any(one in text for one in batch.followed):
                found.add(row)
    return np.array(sorted(found)[:_MOST], np.int64)


def trace_inputs(plan: Plan, inbox: Inbox, component: str, timings: Timings) -> list[Traced]:
    """Return the inputs of traced roots, with their fates."""
    if not inbox.batch.traced:
        return []
    return list(_Inputs(plan, inbox, component, timings).nodes())


def _names_of(anchors: Anchors, parent: Indexes, root: int, task: int) -> Iterator[str]:
    """Yield the names of the task's inputs that a tuple is anchored to, as tuples of a root."""
    _, inputs = anchors.of(parent)
    _, pairs = anchors.inputs.pairs_of(inputs)
    for pair in pairs.tolist():
        if int(anchors.inputs.roots[pair]) == root:
            yield _name(int(anchors.inputs.shares[pair]), task)


def _name(share: int, task: int) -> str:
    """Return the name of a tuple: an only child inherits its parent's share, in another task."""
    return f"{share:016x}-{task}"


@final
class _Inputs:
    """The traced inputs of one task."""

    def __init__(self, plan: Plan, inbox: Inbox, component: str, timings: Timings) -> None:
        self._plan = plan
        self._inbox = inbox
        self._component = component
        self._timings = timings
        # Readings are of a clock that knows no date.
        self._epoch = time.time() - time.perf_counter()

    def nodes(self) -> Iterator[Traced]:
        """Yield each traced input once for each traced root."""
        inbox, lineage = self._inbox, self._inbox.with_adopted()
        pairs = np.flatnonzero(locate(inbox.batch.traced, lineage.roots) >= 0)[:_MOST]
        owners = lineage.owners()[pairs]
        values = self._values(np.unique(owners[owners < inbox.received]))
        for pair, index in zip(pairs.tolist(), owners.tolist(), strict=True):
            facts = values.get(index, {})
            yield (
                int(lineage.roots[pair]),
                self._node(index, int(lineage.shares[pair]), facts),
            )

    def _node(self, index: int, share: int, facts: dict[str, Any]) -> NodeView:
        failure = self._inbox.failures.get(index)
        begin, secs = self._timings.of(index)
        return NodeView(
            id=_name(share, self._inbox.task),
            parents=[],
            source=facts.get("source", ""),
            source_task=facts.get("source_task", 0),
            stream=facts.get("stream", ""),
            component=self._component,
            task=self._inbox.task,
            values=facts.get("values", {}),
            at=None if begin is None else self._epoch + begin,
            secs=secs,
            state=_STATES.get(self._inbox.status[index], "open"),
            reason="" if failure is None else failure.reason.value,
            why="" if failure is None else failure.message,
            frame="" if failure is None else users_line(failure.traceback),
            trace="" if failure is None else failure.traceback,
        )

    def _values(self, wanted: NDArray[np.int64]) -> dict[int, dict[str, Any]]:
        """Read the wanted tuples of packets once more; the bolt's own objects may have changed."""
        found: dict[int, dict[str, Any]] = {}
        start = 0
        for packet in self._inbox.packets:
            rows = wanted[(wanted >= start) & (wanted < start + packet.count)] - start
            if len(rows):
                key = self._plan.stream_keys[packet.head.stream]
                names = self._plan.stream(key).names
                columns, _ = packet.read()
                picked = islice(
                    rows_of([column.take(rows) for column in columns], len(rows)), len(rows)
                )
                for row, values in zip(rows.tolist(), picked, strict=True):
                    found[start + row] = {
                        "source": key.component,
                        "source_task": packet.head.source,
                        "stream": key.stream,
                        "values": {
                            name: shown(one) for name, one in zip(names, values, strict=True)
                        },
                    }
            start += packet.count
        return found
