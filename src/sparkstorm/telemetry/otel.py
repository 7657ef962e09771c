"""OpenTelemetry: spans and metrics by the semantic conventions for messaging.

All of them are made in the driver from facts, after the events: a span begins and ends at the times
that the facts tell.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, final

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode

from sparkstorm._version import __version__
from sparkstorm.control.views import AttemptView, NodeView
from sparkstorm.metrics import BatchTiming, TaskMetrics
from sparkstorm.sources.unfinished import Named

__all__ = ["Messaging"]

_SCOPE = "sparkstorm"

_MOST_DURATIONS = 1_000
"""Recording one amount takes microseconds, and many thousands may end at once."""

_MOST_REMEMBERED = 10_000
"""Spans of earlier attempts, and of batches, that later spans may link to."""


@final
class Messaging:
    """Tells the SDK that the user has configured; without an SDK nothing happens.

    Metrics: ``messaging.client.consumed.messages``, ``messaging.client.operation.duration`` (of
    ``receive`` and ``settle``, by batch) and ``messaging.process.duration`` (from plan to verdict).
    Spans: ``receive SPOUT`` for each batch; ``process SPOUT`` for each attempt that the driver
    keeps, linked to its batch and to the attempt before, with a child for each executed tuple of a
    traced attempt and for the settlement.

    Args:
        topology: the topology's name; the conventions' consumer group.
    """

    def __init__(self, topology: str) -> None:
        self._topology = topology
        self._tracer = trace.get_tracer(_SCOPE, __version__)
        meter = metrics.get_meter(_SCOPE, __version__)
        self._consumed = meter.create_counter(
            "messaging.client.consumed.messages",
            unit="{message}",
            description="Number of messages that were delivered to the application.",
        )
        self._operation = meter.create_histogram(
            "messaging.client.operation.duration",
            unit="s",
            description="Duration of messaging operation initiated by a producer or consumer "
            "client.",
        )
        self._process = meter.create_histogram(
            "messaging.process.duration", unit="s", description="Duration of processing operation."
        )
        self._batches = _Remembered()
        self._attempts = _Remembered()

    def batch_committed(self, timing: BatchTiming, messages: Mapping[str, int]) -> None:
        """Tell of the receipt and the settlement of a batch, for each spout."""
        for spout, count in messages.items():
            receive = self._facts(spout, "receive")
            self._consumed.add(count, receive)
            self._operation.record(timing.start_secs, receive)
            self._operation.record(timing.commit_secs, self._facts(spout, "settle", "commit"))
            span = self._tracer.start_span(
                f"receive {spout}",
                Context(),
                SpanKind.CLIENT,
                {
                    **receive,
                    "messaging.batch.message_count": count,
                    "sparkstorm.batch": timing.number,
                },
                start_time=_nanoseconds(timing.at),
            )
            span.end(_nanoseconds(timing.at + timing.start_secs))
            self._batches.add(f"{timing.number} {spout}", span)

    def messages_ended(self, spout: str, counts: TaskMetrics) -> None:
        """Record how long acked messages took; failed ones are recorded with their attempts."""
        facts = self._facts(spout, "process")
        for secs in counts.complete.sample(_MOST_DURATIONS):
            self._process.record(secs, facts)

    def attempt_ended(self, named: Named, attempt: AttemptView) -> None:
        """Tell of an attempt and of what happened in it."""
        ended = attempt.began if attempt.ended is None else max(attempt.ended, attempt.began)
        facts = self._facts(named.component, "process")
        if attempt.outcome != "acked":
            facts["error.type"] = attempt.outcome
            self._process.record(ended - attempt.began, facts)
        span = self._tracer.start_span(
            f"process {named.component}",
            Context(),
            SpanKind.CONSUMER,
            {
                **facts,
                "messaging.message.id": named.name,
                "sparkstorm.message": named.id,
                "sparkstorm.attempt": attempt.number,
                "sparkstorm.batch": attempt.batch,
            },
            [
                *self._batches.links(f"{attempt.batch} {named.component}"),
                *self._attempts.links(named.id),
            ],
            _nanoseconds(attempt.began),
        )
        if attempt.outcome != "acked":
            _tell_failure(span, attempt, ended)
        self._tell_tuples(span, attempt)
        self._tell_settled(span, named.component, is_acked=attempt.outcome == "acked", at=ended)
        span.end(_nanoseconds(ended))
        self._attempts.add(named.id, span)

    def _tell_tuples(self, attempt_span: Span, attempt: AttemptView) -> None:
        """Tell of the executed tuples, each as a child of the first that it is anchored to."""
        spans: dict[str, Span] = {}
        for node in attempt.tree.nodes if attempt.tree is not None else ():
            if node.at is None or node.secs is None:
                continue
            above = next((spans[one] for one in node.parents if one in spans), attempt_span)
            spans[node.id] = span = self._tracer.start_span(
                f"execute {node.component}",
                trace.set_span_in_context(above, Context()),
                SpanKind.INTERNAL,
                _facts_of(node),
                start_time=_nanoseconds(node.at),
            )
            if node.state == "failed":
                span.set_status(Status(StatusCode.ERROR, node.why))
            span.end(_nanoseconds(node.at + node.secs))

    def _tell_settled(self, above: Span, spout: str, *, is_acked: bool, at: float) -> None:
        name = "ack" if is_acked else "nack"
        self._tracer.start_span(
            f"{name} {spout}",
            trace.set_span_in_context(above, Context()),
            SpanKind.CLIENT,
            self._facts(spout, "settle", name),
            start_time=_nanoseconds(at),
        ).end(_nanoseconds(at))

    def _facts(self, spout: str, kind: str, name: str = "") -> dict[str, Any]:
        return {
            "messaging.system": "sparkstorm",
            "messaging.operation.type": kind,
            "messaging.operation.name": name or kind,
            "messaging.destination.name": spout,
            "messaging.consumer.group.name": self._topology,
        }


@final
class _Remembered:
    """The contexts of the last spans, by name."""

    def __init__(self) -> None:
        self._contexts: OrderedDict[str, SpanContext] = OrderedDict()

    def add(self, name: str, span: Span) -> None:
        self._contexts[name] = span.get_span_context()
        self._contexts.move_to_end(name)
        if len(self._contexts) > _MOST_REMEMBERED:
            self._contexts.popitem(last=False)

    def links(self, name: str) -> list[Link]:
        found = self._contexts.get(name)
        return [] if found is None else [Link(found)]


def _tell_failure(span: Span, attempt: AttemptView, ended: float) -> None:
    span.set_status(Status(StatusCode.ERROR, attempt.why))
    if attempt.component:
        span.set_attribute("sparkstorm.component", attempt.component)
    if attempt.trace:
        span.add_event(
            "exception",
            {"exception.message": attempt.why, "exception.stacktrace": attempt.trace},
            _nanoseconds(ended),
        )


def _facts_of(node: NodeView) -> dict[str, Any]:
    facts = {
        "sparkstorm.component": node.component,
        "sparkstorm.task": node.task or 0,
        "sparkstorm.source": node.source,
        "sparkstorm.stream": node.stream,
    }
    return {**facts, "error.type": node.reason} if node.reason else facts


def _nanoseconds(secs: float) -> int:
    return round(secs * 1e9)
