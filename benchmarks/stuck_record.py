"""The price of a record that fails for ever: the ack rate of others in its Kafka partition.

``python -m benchmarks.stuck_record [rounds]``. A topic of one partition with 400,000 records, read
on Spark in turns with a first record that passes and with a first record that always fails. The
figure is the ack rate of the other records after the first tenth of them; the ratio must be at
least 0.9. Exit code 1 if it is lower.
"""

import argparse
import logging
import statistics
import sys
import time

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

import sparkstorm as ss
from sparkstorm.kafka import KafkaSpout
from sparkstorm.spark.driver.session import make_session
from sparkstorm.spark.run import Run
from sparkstorm.tasks.report import LINES
from sparkstorm.testing.servers import KafkaServer

RECORDS = 400_000
WARM = RECORDS // 10
TARGET = 0.9
_TOPIC = "records"
_PATIENCE_SECS = 300.0


class Pass(ss.BasicBolt):
    """Passes all records; may fail the first."""

    def __init__(self, *, fails: bool) -> None:
        self._fails = fails

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if self._fails and tup["offset"] == 0:
            raise ValueError("never")


def fill(address: str) -> None:
    """Make the topic and produce the records."""
    client = {"bootstrap.servers": address}
    admin = AdminClient(client)  # must outlive its answers
    for made in admin.create_topics([NewTopic(_TOPIC, 1)]).values():
        made.result()
    producer = Producer({**client, "queue.buffering.max.messages": RECORDS})
    for number in range(RECORDS):
        producer.produce(_TOPIC, f"record {number}".encode())
    producer.flush()


def rate(session: SparkSession, address: str, *, stuck: bool) -> float:
    """Run once; return the acks per second after the first tenth."""
    builder = ss.TopologyBuilder()
    spout = KafkaSpout(
        _TOPIC,
        bootstrap_servers=address,
        group=f"rate-{time.time_ns()}",
        fields=["offset", "value"],
        max_uncommitted=2 * RECORDS,
    )
    builder.set_spout("records", spout)
    builder.set_bolt("pass", Pass(fails=stuck), 2).shuffle_grouping("records")
    config = ss.Config(max_retries=None, retry_backoff_secs=0.1, batch_max_messages=20_000)
    logging.getLogger(LINES).setLevel(logging.CRITICAL)
    with ss.submit(builder.create_topology(), name="rate", config=config, session=session) as run:
        began = _moment(run, WARM)
        ended = _moment(run, RECORDS - stuck)
        assert run.statistics().acked == RECORDS - stuck
        run.stop(drain=False)
    return (RECORDS - WARM) / (ended - began)


def _moment(run: Run, acked: int) -> float:
    """Wait until so many records are acked; return the time."""
    deadline = time.monotonic() + _PATIENCE_SECS
    while run.statistics().acked < acked:
        assert time.monotonic() < deadline, run.statistics()
        time.sleep(0.002)
    return time.monotonic()


def main() -> int:
    """Print each pair of runs, then the ratio of the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=3)
    rounds = parser.parse_args().rounds
    ratios = []
    with KafkaServer() as kafka:
        fill(kafka.address)
        session = make_session("stuck-record", "local[2]")
        try:
            rate(session, kafka.address, stuck=False)  # warms up the JVM and the workers
            for number in range(rounds):
                without = rate(session, kafka.address, stuck=False)
                beside = rate(session, kafka.address, stuck=True)
                ratios.append(beside / without)
                print(f"{number}: {without:,.0f} records/s, beside a stuck one {beside:,.0f}")
        finally:
            session.stop()
    ratio = statistics.median(ratios)
    print(f"median of the ratios: {ratio:.2f}, target {TARGET}")
    return 0 if ratio >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
