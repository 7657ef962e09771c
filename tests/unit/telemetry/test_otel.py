"""OpenTelemetry: spans and metrics, read by the SDK's own exporters in memory."""

import re
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import sparkstorm as ss
from sparkstorm.control.views import AttemptView
from sparkstorm.metrics import BatchTiming, TaskMetrics
from sparkstorm.sources.unfinished import Named
from sparkstorm.spouts import ReplayingSpout
from sparkstorm.telemetry import Outlet, opened_outlet
from sparkstorm.telemetry.outlet import OPT_IN
from sparkstorm.testing import LocalRunner, ManualClock


class Orders(ReplayingSpout):
    """Emits orders, each under its number."""

    outputs = "item string"

    def __init__(self, *items: str) -> None:
        self.items = list(enumerate(items))

    def next_message(self) -> tuple[str, list[Any]] | None:
        if not self.items:
            return None
        number, item = self.items.pop(0)
        return f"order-{number}", [item]


class Check(ss.BasicBolt):
    """Knows no bad items."""

    outputs = "item string"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["item"] == "bad":
            raise ValueError("bad item")
        collector.emit([tup["item"]])


class Ship(ss.BasicBolt):
    """Takes everything."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None: ...


@dataclass
class Sdk:
    """A configured SDK."""

    spans: InMemorySpanExporter
    reader: InMemoryMetricReader
    tracers: TracerProvider

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans.get_finished_spans() if span.name == name]

    def points(self, name: str) -> dict[tuple[str, str | None], Any]:
        """The points of a metric, by the operation's name and the type of error."""
        data: Any = self.reader.get_metrics_data()
        found: dict[tuple[str, str | None], Any] = {}
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points if metric.name == name else ():
                        facts = point.attributes
                        key = facts["messaging.operation.name"], facts.get("error.type")
                        found[key] = point
        return found


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sdk]:
    """The SDK as a user configures it; the library itself lets nobody configure it twice."""
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    meters = MeterProvider([reader])
    monkeypatch.setattr(trace, "get_tracer", tracers.get_tracer)
    monkeypatch.setattr(metrics, "get_meter", meters.get_meter)
    yield Sdk(spans, reader, tracers)
    tracers.shutdown()
    meters.shutdown()


def run(*items: str) -> None:
    """Run orders until all have ended, the bad with a further attempt."""
    builder = ss.TopologyBuilder()
    builder.set_spout("orders", Orders(*items))
    builder.set_bolt("check", Check()).shuffle_grouping("orders")
    builder.set_bolt("ship", Ship()).shuffle_grouping("check")
    clock = ManualClock()
    config = ss.Config(max_retries=1)
    with (
        LocalRunner(builder.create_topology(), name="shop", config=config, clock=clock) as runner,
        opened_outlet("shop", runner.coordinator.observe),
    ):
        runner.run_until_idle()
        clock.advance(60)
        runner.run_until_idle()


@pytest.fixture
def _opted_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OPT_IN, "http,messaging")


def test_without_the_variable_nothing_is_told(sdk: Sdk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OPT_IN, "http")
    run("tea", "bad")
    assert sdk.spans.get_finished_spans() == ()
    assert sdk.points("messaging.client.consumed.messages") == {}


@pytest.mark.usefixtures("_opted_in")
def test_messages_are_counted_exactly(sdk: Sdk) -> None:
    """Each attempt is delivered once."""
    run("tea", "bad", "milk")
    consumed = sdk.points("messaging.client.consumed.messages")
    assert {key: point.value for key, point in consumed.items()} == {("receive", None): 4}
    process = sdk.points("messaging.process.duration")
    assert {key: point.count for key, point in process.items()} == {
        ("process", None): 2,
        ("process", "error"): 2,
    }
    operations = sdk.points("messaging.client.operation.duration")
    assert {key: point.count for key, point in operations.items()} == {
        ("receive", None): 2,
        ("commit", None): 2,
    }


@pytest.mark.usefixtures("_opted_in")
def test_attempts_are_linked_with_each_other_and_with_their_batches(sdk: Sdk) -> None:
    run("bad")
    first, second = sdk.named("process orders")
    batches = [span.get_span_context() for span in sdk.named("receive orders")]
    assert [link.context for link in first.links] == batches[:1]
    assert [link.context for link in second.links] == [batches[1], first.get_span_context()]
    assert (second.kind, second.status.status_code) == (SpanKind.CONSUMER, StatusCode.ERROR)
    facts = dict(second.attributes or {})
    assert facts["messaging.message.id"] == "order-0"
    assert facts["sparkstorm.attempt"] == 2
    assert facts["error.type"] == "error"
    (event,) = second.events
    assert "ValueError: bad item" in str((event.attributes or {})["exception.stacktrace"])


@pytest.mark.usefixtures("_opted_in")
def test_a_traced_attempt_has_a_child_for_each_tuple_and_its_settlement(sdk: Sdk) -> None:
    run("tea")
    (attempt,) = sdk.named("process orders")
    (check,), (ship,), (ack,) = (
        sdk.named(name) for name in ("execute check", "execute ship", "ack orders")
    )
    parents = [span.parent and span.parent.span_id for span in (check, ship, ack)]
    context = attempt.get_span_context()
    assert context is not None
    own = check.get_span_context()
    assert own is not None
    assert parents == [context.span_id, own.span_id, context.span_id]
    assert (ack.attributes or {})["messaging.operation.type"] == "settle"


@pytest.mark.usefixtures("_opted_in")
def test_a_processor_that_fails_stops_no_topology(
    sdk: Sdk, caplog: pytest.LogCaptureFixture
) -> None:
    """Its first failure is logged, and the metrics go on."""

    class Broken(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            raise OSError("no disk")

    sdk.tracers.add_span_processor(Broken())
    run("tea", "bad")
    assert len(sdk.points("messaging.client.consumed.messages")) == 1
    # In one process a bolt's task may hear of the line as well, and tell it as its own.
    own = [record for record in caplog.records if record.name == "sparkstorm.telemetry.outlet"]
    failures = [record.getMessage() for record in own]
    assert failures == ["OpenTelemetry failed; further failures are not told"]


def test_without_the_library_the_variable_is_meant_for_others(
    sdk: Sdk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OPT_IN, "messaging")
    monkeypatch.setitem(sys.modules, "sparkstorm.telemetry.otel", None)
    run("tea")
    assert sdk.spans.get_finished_spans() == ()


def test_a_slow_exporter_holds_up_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Facts beyond the limit are dropped, and counted."""
    gate = threading.Event()

    class Slow:
        def batch_committed(self, timing: BatchTiming, messages: Mapping[str, int]) -> None:
            gate.wait()

        def messages_ended(self, spout: str, counts: TaskMetrics) -> None: ...

        def attempt_ended(self, named: Named, attempt: AttemptView) -> None: ...

    outlet = Outlet(Slow())
    for _ in range(10_100):
        outlet.batch_committed(BatchTiming(number=0, messages=0, at=0.0), {})
    gate.set()
    outlet.close()
    assert re.search(r"too slow: (99|100) facts were dropped", caplog.text)
