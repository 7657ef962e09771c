"""Throughput from a topic: sparkstorm, PySpark's own Kafka source, and the bare client.

``python -m benchmarks.kafka_topic [--records 4000000] [--partitions 4] [--turns 5]
[--target-secs 1] [--connector 4.2.0]``. Each reads topics from their beginning to their end, and a
Python function looks at each value; PySpark's in ``mapInArrow``. All have the same records, and
those on Spark the same session and cores.

PySpark's source reads twice: the whole topic as a single batch, and in batches as large as those of
sparkstorm in which most records were. A batch has a fixed cost, so the first is the fastest way for
the source, with results at the end alone; the second has results as early as sparkstorm.
``--target-secs`` sets the time of sparkstorm's batches (``topology.batch.target.secs``).

A turn reads a long topic and a short one, a tenth as long, with each reader. The time that the long
one takes beyond the short one gives the steady rate. The rest of the short one's time is the start:
finding the topic, starting the query, and batches that still grow. Each reads the long topic once
before, so that the JVM has compiled its code. Machines are busy for a while at a time, so ratios
are those of single turns; the median and both ends are printed. A busy machine gives more time to a
reader with more threads; the CPU time, of all processes and the broker, tells more there.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import confluent_kafka as ck
import pyarrow as pa
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

import sparkstorm as ss
from benchmarks.process_cpu import TreeCpu
from benchmarks.spark_settings import (
    PARALLELISM,
    SPARK_SETTINGS,
    daemon_settings,
    prepare_environment,
)
from sparkstorm.kafka import KafkaSpout
from sparkstorm.testing.servers import KafkaServer

CLIENT, OURS = "bare client", "sparkstorm"
ONE_BATCH, BATCHES = "PySpark's source in one batch", "PySpark's source in batches as large"

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


@final
class Readers:
    """Readers of topics, by name; each returns how many records it has seen.

    Args:
        spark: the session.
        address: the broker's.
        partitions: the number of each topic's partitions.
        target_secs: the time of sparkstorm's batches.
    """

    def __init__(
        self, spark: SparkSession, address: str, partitions: int, target_secs: float
    ) -> None:
        self._spark = spark
        self._address = address
        self._partitions = partitions
        self._target_secs = target_secs
        self._batch_records = 100_000

    def all(self) -> dict[str, Callable[[str], int]]:
        """Return all readers, in the order of a turn."""
        return {CLIENT: self._client, OURS: self._ours, ONE_BATCH: self._theirs, BATCHES: self._cut}

    def _client(self, topic: str) -> int:
        return by_client(self._address, topic, self._partitions)

    def _ours(self, topic: str) -> int:
        told = by_sparkstorm(self._spark, self._address, topic, self._target_secs)
        sizes = [timing.messages for timing in told.timings]
        # the mean over records, since the first batches are many and small
        self._batch_records = sum(size * size for size in sizes) // sum(sizes)
        return told.acked

    def _theirs(self, topic: str) -> int:
        return by_pyspark(self._spark, self._address, topic, {})

    def _cut(self, topic: str) -> int:
        limit = {"maxOffsetsPerTrigger": str(self._batch_records)}
        return by_pyspark(self._spark, self._address, topic, limit)


def by_sparkstorm(
    spark: SparkSession, address: str, topic: str, target_secs: float
) -> ss.Statistics:
    """Read a topic with a topology; return its statistics."""
    group = uuid.uuid4().hex  # a group that has read the topic would have nothing left to read
    spout = KafkaSpout(
        topic, bootstrap_servers=address, group=group, until="latest", fields=["value"]
    )
    builder = ss.TopologyBuilder()
    builder.set_spout("topic", spout)
    builder.set_bolt("measure", Measure(), PARALLELISM).local_or_shuffle_grouping("topic")
    config = {"partitions": PARALLELISM, "batch_target_secs": target_secs}
    with ss.submit(builder.create_topology(), session=spark, config=config) as run:
        run.wait_until_drained(_LIMIT_SECS)
        told: ss.Statistics = run.statistics()
        return told


def by_pyspark(spark: SparkSession, address: str, topic: str, options: Mapping[str, str]) -> int:
    """Read a topic with PySpark's source; return how many records the function saw."""
    seen: list[int] = []
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", address)
    source = source.option("subscribe", topic).option("startingOffsets", "earliest")
    lines = source.options(**options).load()
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
        {
            "bootstrap.servers": address,
            "group.id": "bare",
            "enable.partition.eof": True,
            # by default a full queue pauses the fetching for a second, longer than it lasts
            "fetch.queue.backoff.ms": 5,
        }
    )
    consumer.assign([ck.TopicPartition(topic, number, 0) for number in range(partitions)])
    count, ends = 0, 0
    while ends < partitions:
        for message in consumer.consume(1_000, 0.5):
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


class Reading(NamedTuple):
    """One reading of a topic: its records, and the time and CPU time in seconds."""

    records: int
    secs: float
    cpu_secs: float


@final
@dataclass(frozen=True, slots=True)
class Turn:
    """A reader's readings of both topics."""

    short: Reading
    long: Reading

    @property
    def rate(self) -> float:
        """Records a second, once started."""
        return self._more / max(self.long.secs - self.short.secs, 1e-9)

    @property
    def cpu_micros(self) -> float:
        """Microseconds of CPU time a record, once started: of all processes, the broker's too."""
        return 1e6 * (self.long.cpu_secs - self.short.cpu_secs) / self._more

    @property
    def start_secs(self) -> float:
        """The time before the first record, at the steady rate."""
        return self.short.secs - self.short.records / self.rate

    @property
    def rate_with_start(self) -> float:
        """Records a second of the long topic, start and end included."""
        return self.long.records / self.long.secs

    @property
    def _more(self) -> int:
        return self.long.records - self.short.records


def spread(values: Sequence[float], digits: int) -> str:
    """Return the median of values, and their ends, for people."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"


def measured(read: Callable[[str], int], topic: str, records: int, cpu: TreeCpu) -> Reading:
    """Read a topic.

    Raises:
        ValueError: the reader missed records.
    """
    used, began = cpu.sample(), time.monotonic()
    count = read(topic)
    reading = Reading(records, time.monotonic() - began, cpu.sample() - used)
    if count != records:
        raise ValueError(f"{count:,} of {records:,} records of the {topic} topic")
    return reading


def report(turns: Mapping[str, Sequence[Turn]]) -> None:
    """Print the rate of each reader, and the ratios of ours to PySpark's."""
    for name, each in turns.items():
        print(
            f"{name}: {spread([one.rate for one in each], 0)} records a second, "
            f"{spread([1e6 / one.rate for one in each], 2)} µs a record, "
            f"{spread([one.cpu_micros for one in each], 2)} µs of CPU time, "
            f"{spread([one.start_secs for one in each], 1)} s to start"
        )
    for name in (ONE_BATCH, BATCHES):
        pairs = list(zip(turns[OURS], turns[name], strict=True))
        steady = spread([ours.rate / theirs.rate for ours, theirs in pairs], 2)
        whole = spread([one.rate_with_start / other.rate_with_start for one, other in pairs], 2)
        print(f"{OURS} ÷ {name}: {steady}; with the start: {whole}")


def main() -> int:
    """Read the arguments, fill two topics, and let the readers read them in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--target-secs", type=float, default=1.0)
    parser.add_argument("--connector", default="4.2.0")
    given = parser.parse_args()
    short, cpu = given.records // 10, TreeCpu()
    turns: dict[str, list[Turn]] = {}
    with KafkaServer() as kafka:
        spark, address = session(given.connector), kafka.address
        print(f"Spark {spark.version}, its Kafka source {given.connector}, {PARALLELISM} cores")
        fill(address, "short", short, given.partitions)
        fill(address, "long", given.records, given.partitions)
        readers = Readers(spark, address, given.partitions, given.target_secs).all()
        try:
            for read in readers.values():
                measured(read, "long", given.records, cpu)
            for number in range(given.turns):
                for name, read in readers.items():
                    turn = Turn(
                        measured(read, "short", short, cpu),
                        measured(read, "long", given.records, cpu),
                    )
                    print(f"turn {number}: {turn.rate:12,.0f} a second, {name}", flush=True)
                    turns.setdefault(name, []).append(turn)
        except ValueError as error:
            print(error)
            return 1
        spark.stop()
    report(turns)
    return 0


if __name__ == "__main__":
    sys.exit(main())
