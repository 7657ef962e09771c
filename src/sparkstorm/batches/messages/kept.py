"""Kept messages: the attempts at one message, each with its tree if it was traced."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, final

from sparkstorm.control.views import AttemptView, LineView, NodeView, TreeView
from sparkstorm.sources.unfinished import Named
from sparkstorm.texts.user_errors import users_line
from sparkstorm.verdicts import Failure

__all__ = ["Attempt", "Kept"]

_MOST_NODES = 2_000
"""The most tuples kept of one attempt."""

_FIRST_ATTEMPTS, _LAST_ATTEMPTS = 3, 17
"""Of a message with more attempts those in the middle are forgotten."""

_TRACE_CHARS = 20_000


@final
@dataclass(slots=True)
class Attempt:
    """One attempt at a message.

    Attributes:
        number: counts from 1.
        batch: the batch in which it began.
        began: when that batch was planned, in seconds since 1970.
        ended: when its verdict was given; None before that.
        outcome: ``running``, ``acked``, or the reason of the failure.
        failure: why it failed.
        nodes: its tuples by their ids; None if the attempt is not traced.
        cut: how many tuples were left out.
        lines: the last lines that components logged meanwhile.
    """

    number: int
    batch: int
    began: float
    ended: float | None = None
    outcome: str = "running"
    failure: Failure | None = None
    nodes: dict[str, NodeView] | None = None
    cut: int = 0
    lines: Sequence[LineView] = ()

    def add(self, node: NodeView) -> None:
        """Add a tuple, or what another task tells of a tuple."""
        nodes = self.nodes = self.nodes if self.nodes is not None else {}
        known = nodes.get(node.id)
        if known is None and len(nodes) >= _MOST_NODES:
            self.cut += 1
        else:
            nodes[node.id] = node if known is None else _joined(known, node)

    def end(self, outcome: str, now: float, failure: Failure | None = None) -> None:
        """Note the verdict."""
        self.outcome, self.ended, self.failure = outcome, now, failure

    def view(self) -> AttemptView:
        """Return the attempt for people."""
        failure = self.failure
        trace = "" if failure is None else failure.traceback[-_TRACE_CHARS:]
        return AttemptView(
            number=self.number,
            batch=self.batch,
            began=self.began,
            ended=self.ended,
            outcome=self.outcome,
            component="" if failure is None else failure.component,
            task=None if failure is None else failure.task,
            why="" if failure is None else failure.message,
            frame=users_line(trace),
            trace=trace,
            tree=None if self.nodes is None else TreeView(nodes=self._tree(), cut=self.cut),
            lines=[*self.lines],
        )

    def _tree(self) -> list[NodeView]:
        """Return the tuples in the order of the tree: each behind its first parent."""
        nodes = self.nodes or {}
        children: dict[str, list[NodeView]] = {}
        for node in nodes.values():
            known = [parent for parent in node.parents if parent in nodes]
            children.setdefault(known[0] if known else "", []).append(node)
        found: list[NodeView] = []
        waiting = children.pop("", [])[::-1]
        while waiting:
            node = waiting.pop()
            found.append(node)
            waiting += children.pop(node.id, [])[::-1]
        return found


@final
@dataclass(slots=True)
class Kept:
    """A message, with its attempts.

    Attributes:
        named: its name.
        state: ``acked`` or ``given up``; empty while it is unfinished.
        attempts: the attempts in order, without some in the middle if they are many.
    """

    named: Named
    state: Literal["", "acked", "given up"] = ""
    attempts: list[Attempt] = field(default_factory=list)

    def begin(self, batch: int, now: float, number: int) -> Attempt:
        """Add an attempt."""
        attempt = Attempt(number, batch, now)
        self.attempts.append(attempt)
        if len(self.attempts) > _FIRST_ATTEMPTS + _LAST_ATTEMPTS:
            del self.attempts[_FIRST_ATTEMPTS]
        return attempt

    @property
    def nodes(self) -> int:
        """How many tuples are kept."""
        return sum(len(attempt.nodes or ()) for attempt in self.attempts)

    @property
    def failure(self) -> Failure | None:
        """Why the last attempt that has ended failed."""
        return next((one.failure for one in reversed(self.attempts) if one.failure), None)

    def drop_trees(self) -> None:
        """Forget the tuples, to save memory."""
        for attempt in self.attempts:
            attempt.nodes = None


def _joined(known: NodeView, news: NodeView) -> NodeView:
    """Join what the emitter and the receiver of a tuple tell, or what a task told before."""
    told, silent = (news, known) if news.state != "emitted" else (known, news)
    return replace(
        told,
        parents=told.parents or silent.parents,
        source=told.source or silent.source,
        source_task=told.source_task or silent.source_task,
        stream=told.stream or silent.stream,
        values=told.values or silent.values,
        at=_first(silent.at, told.at),
    )


def _first(*times: float | None) -> float | None:
    known: Sequence[float] = [time for time in times if time is not None]
    return min(known, default=None)
