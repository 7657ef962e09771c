"""Throughput from a topic: sparkstorm, PySpark's own Kafka source, and the bare client.

``python -m benchmarks.kafka_topic [--records 1000000] [--partitions 4] [--turns 3]
[--connector 4.2.0]``. Each of the three reads one topic from its beginning to its end, and a Python
function sees each value; PySpark's in ``mapInArrow``. Each takes a short turn before the measured
ones, so that the start of the JVM and of the workers does not count. They read in turns, so that a
machine that is busy for a while is busy for all of them. Prints records a second, and the ratio of
ours and PySpark's in the median turn.

PySpark's source is a package of Maven Central, which ``--connector`` names the version of: Spark
4.3.0 has none there (November 2026), and 4.2.0 is the nearest. The ratio holds for that pair.
Exit code 1 if a reader missed records.
"""

import argparse
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka as ck
import pyarrow as pa
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

import sparkstorm as ss
from benchmarks.spark_settings import (
    PARALLELISM,
    SPARK_SETTINGS,
    daemon_settings,
    prepare_environment,
)
from sparkstorm.kafka import KafkaSpout
from sparkstorm.testing.servers import KafkaServer

_LENGTH = 100
_LIMIT_SECS = 300.0


class Measure(ss.BasicBolt):
    """Looks at the length of each value."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Check one value."""
        if len(tup["value"]) != _LENGTH:
            raise ValueError("a value of another length")


def measure(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Look at the length of each value, in mapInArrow; yield how many there were."""
    for batch in batches:
        for value in batch.column(0).to_pylist():
            if len(value) != _LENGTH:
                raise ValueError("a value of another length")
        yield pa.RecordBatch.from_pydict({"seen": [batch.num_rows]})


def fill(address: str, topic: str, records: int, partitions: int) -> None:
    """Make a topic with so many records, spread over its partitions."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
    producer = ck.Producer({"bootstrap.servers": address, "linger.ms": 50})
    value = b"x" * _LENGTH
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value, partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(60)


def by_sparkstorm(spark: SparkSession, address: str, topic: str) -> int:
    """Read a topic with a topology; return how many records were acked."""
    group = uuid.uuid4().hex  # a group that has read the topic would have nothing left to read
    spout = KafkaSpout(
        topic, bootstrap_servers=address, group=group, until="latest", fields=["value"]
    )
    builder = ss.TopologyBuilder()
    builder.set_spout("topic", spout)
    builder.set_bolt("measure", Measure(), PARALLELISM).local_or_shuffle_grouping("topic")
    config = {"partitions": PARALLELISM}
    with ss.submit(builder.create_topology(), session=spark, config=config) as run:
        run.wait_until_drained(_LIMIT_SECS)
        return run.statistics().acked


def by_pyspark(spark: SparkSession, address: str, topic: str) -> int:
    """Read a topic with PySpark's source; return how many records the function saw."""
    seen: list[int] = []
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", address)
    lines = source.option("subscribe", topic).option("startingOffsets", "earliest").load()
    counted = lines.select("value").mapInArrow(measure, "seen long")

    def take(frame: Any, _: int) -> None:
        seen.extend(row.seen for row in frame.collect())

    with tempfile.TemporaryDirectory() as folder:
        writer = counted.writeStream.foreachBatch(take).trigger(availableNow=True)
        query = writer.option("checkpointLocation", folder).start()
        query.awaitTermination(int(_LIMIT_SECS))
    return sum(seen)


def by_client(address: str, topic: str, partitions: int) -> int:
    """Read a topic with the bare client, in one process; return how many records it gave."""
    consumer = ck.Consumer(
        {"bootstrap.servers": address, "group.id": "bare", "enable.partition.eof": True}
    )
    consumer.assign([ck.TopicPartition(topic, number, 0) for number in range(partitions)])
    count, ends = 0, 0
    while ends < partitions:
        for message in consumer.consume(10_000, 0.5):
            if message.error() is not None:
                ends += message.error().code() == ck.KafkaError._PARTITION_EOF
            elif len(message.value()) == _LENGTH:
                count += 1
    consumer.close()
    return count


def session(connector: str) -> SparkSession:
    """Start Spark with the package of its Kafka source."""
    prepare_environment()
    package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{connector}"
    builder = SparkSession.builder.appName("kafka-topic").config("spark.jars.packages", package)
    for key, value in (SPARK_SETTINGS | daemon_settings()).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def main() -> int:
    """Read the arguments, fill two topics, and let the three read them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--connector", default="4.2.0")
    given = parser.parse_args()
    whole, rates = True, dict[str, list[float]]()
    with KafkaServer() as kafka:
        spark, address = session(given.connector), kafka.address
        print(f"Spark {spark.version}, its Kafka source {given.connector}")
        fill(address, "warm", 10_000, given.partitions)
        fill(address, "full", given.records, given.partitions)
        readers: dict[str, Callable[[str], int]] = {
            "bare client": lambda topic: by_client(address, topic, given.partitions),
            "sparkstorm": lambda topic: by_sparkstorm(spark, address, topic),
            "PySpark's source": lambda topic: by_pyspark(spark, address, topic),
        }
        for read in readers.values():
            read("warm")
        for name, read in [*readers.items()] * given.turns:
            began = time.monotonic()
            count = read("full")
            rate = count / (time.monotonic() - began)
            rates.setdefault(name, []).append(rate)
            whole = whole and count == given.records
            print(f"{name:17} {count:12,} records, {rate:12,.0f} a second", flush=True)
        spark.stop()
    pairs = zip(rates["sparkstorm"], rates["PySpark's source"], strict=True)
    ratios = sorted(ours / theirs for ours, theirs in pairs)
    print(
        f"sparkstorm ÷ PySpark's source: {statistics.median(ratios):.2f}, the median of "
        f"{given.turns} turns, from {ratios[0]:.2f} to {ratios[-1]:.2f}"
    )
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
