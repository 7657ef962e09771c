"""Lines and levels of bolts in Spark's workers, and spans of what happened there."""

import logging
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import cloudpickle
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import sparkstorm as ss
from sparkstorm.tasks.report import LINES
from sparkstorm.telemetry.outlet import OPT_IN
from sparkstorm.testing import FeederSpout, wait_until

pytestmark = pytest.mark.spark


class Look(ss.BasicBolt):
    """Logs at two levels."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        logging.getLogger("shop").debug("looking at %s", tup["item"])
        logging.getLogger("shop").warning("got %s", tup["item"])


@pytest.fixture(autouse=True)
def this_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Ship this file to the workers, which cannot import it."""
    module: ModuleType = request.module
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)
    logging.getLogger(f"{LINES}.look").setLevel(logging.NOTSET)


def test_lines_levels_and_spans_of_real_workers(
    spark: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A level set while the run goes on makes the workers say more."""
    spans, tracers = InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(trace, "get_tracer", tracers.get_tracer)
    monkeypatch.setenv(OPT_IN, "messaging")
    feeder = FeederSpout("item string")
    builder = ss.TopologyBuilder()
    builder.set_spout("items", feeder)
    builder.set_bolt("look", Look()).shuffle_grouping("items")
    with (
        caplog.at_level(logging.DEBUG, LINES),
        ss.submit(builder.create_topology(), name="shop", session=spark) as run,
    ):
        feeder.feed(["tea"], msg_id="tea-1")
        wait_until(lambda: feeder.acked == ["tea-1"], check=run._check)
        run.set_level("look", "DEBUG")
        feeder.feed(["milk"], msg_id="milk-2")
        wait_until(lambda: len(feeder.acked) == 2, check=run._check)
    lines = [vars(record) for record in caplog.records if hasattr(record, "message_name")]
    assert [(one["message_name"], one["attempt"], one["line"].text) for one in lines] == [
        ("tea-1", 1, "got tea"),
        ("milk-2", 1, "looking at milk"),
        ("milk-2", 1, "got milk"),
    ]
    names = [span.name for span in spans.get_finished_spans()]
    for name in ("receive items", "process items", "execute look", "ack items"):
        assert names.count(name) == 2
