"""Odd records on a real broker: each is its own fault, and its letter has all that it holds."""

from typing import Any

import confluent_kafka as ck
import pytest

import sparkstorm as ss
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.dead_letters import DeadLetter, LetterStore
from sparkstorm.kafka import DeadLetterTopic, KafkaSpout, RecordInfo, WithRecord
from sparkstorm.testing import CapturingBolt, LocalRunner

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

MICROSECONDS = 1_700_000_000_000_000


def read_topic(spout: KafkaSpout, **config: Any) -> tuple[list[Any], list[DeadLetter]]:
    """Run a spout to the end; return the rows that a bolt got, and the letters."""
    builder = ss.TopologyBuilder()
    builder.set_spout("in", spout)
    builder.set_bolt("seen", CapturingBolt()).shuffle_grouping("in")
    files = MemoryFiles()
    settings = ss.Config(max_retries=0, **config)
    with LocalRunner(builder.create_topology(), name="t", config=settings, files=files) as runner:
        runner.run_until_idle()
        rows = [tuple(tup.values) for tup in runner.component("seen").received]
    return rows, list(LetterStore(files).letters())


def put_odd(kafka: Any, topic: str) -> None:
    """Ten good records, and one with a time in microseconds in their middle."""
    kafka.put(topic, range(5))
    kafka.put(topic, [b"odd"], key=b"k", headers=[("h", b"\xff")], timestamp=MICROSECONDS)
    kafka.put(topic, range(5, 10))
