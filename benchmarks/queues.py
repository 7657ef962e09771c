"""Messages per second from each queue, beside the bare client's own loop and the driver's limit.

``python -m benchmarks.queues [sqs] [kestrel] [redis] [postgres] [rabbitmq] [--scale 1]``. A
topology of one spout and a bolt that acks runs on Spark, ``local[2]``, with default settings. The
same topology reads from a list in the driver's memory, through the same lease keeper: the rate of
one spout task that holds so many messages at once, if a queue costs nothing. The bare loop takes,
reads and deletes by the client's own calls, one after the other, without a lease that outlives a
call.

The driver has one Python interpreter. It does for each message what the bare client does, and what
the topology on the list does. The limit is the rate at which it would do both, one after the other.

Rates are those of the last four fifths of the messages, so the start of Spark does not count. Exit
code 1 if a source is slower than half of that limit.
"""

import argparse
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

import sparkstorm as ss
from sparkstorm.queues import Delivery, Lease, Queue, QueueSpout
from sparkstorm.testing.servers import (
    ElasticMQServer,
    KestrelServer,
    PostgresServer,
    RabbitServer,
    RedisServer,
)
from tests.queues.kestrel_bench import KestrelBench
from tests.queues.postgres_bench import PostgresBench
from tests.queues.rabbit_bench import RabbitBench
from tests.queues.redis_bench import RedisBench, client_of
from tests.queues.sqs_bench import SQSBench

TARGET = 0.5
WARM_UP = 0.2
LONGEST_SECS = 600.0
LOOK_SECS = 0.02


class Ack(ss.Bolt):
    """Acks each tuple."""

    def execute(self, tup: ss.Tuple) -> None:
        """Ack."""
        self.collector.ack(tup)


class ListQueue:
    """Hands out made-up messages; settling one costs nothing."""

    name = "a list in memory"
    lease_secs = 30.0
    leases_survive = True

    def __init__(self, messages: int) -> None:
        self._numbers = iter(range(messages))

    def connect(self) -> None:
        """Do nothing."""

    def take(self, limit: int, wait_secs: float) -> Sequence[Delivery]:
        """Make the next messages."""
        return [
            Delivery(message_id=number, lease=number, body=b"message %d" % number)
            for _, number in zip(range(limit), self._numbers, strict=False)
        ]

    def extend(self, leases: Collection[Lease]) -> Collection[Lease]:
        """Extend all."""
        return ()

    def settle(self, leases: Collection[Lease]) -> Collection[Lease]:
        """Settle all."""
        return ()

    def give_back(self, leases: Collection[Lease]) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class ListSpout(QueueSpout):
    """Emits the messages of a :class:`ListQueue`, and holds as many at once as another spout."""

    def __init__(self, messages: int, other: QueueSpout) -> None:
        super().__init__()
        self.default_pending = other.default_pending
        self.max_waiting = other.max_waiting
        self._messages = messages

    def make_queue(self, config: ss.Config, context: ss.TaskContext) -> Queue:
        """Return the list."""
        return ListQueue(self._messages)


def bare_sqs(bench: SQSBench, messages: int) -> float:
    """Receive and delete ten messages a call."""
    started, done = time.perf_counter(), 0
    while done < messages:
        answer = bench.client.receive_message(
            QueueUrl=bench.url, MaxNumberOfMessages=10, WaitTimeSeconds=1
        )
        taken = answer.get("Messages") or []
        entries = [
            {"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate(taken)
        ]
        if entries:
            bench.client.delete_message_batch(QueueUrl=bench.url, Entries=entries)
        done += len(taken)
    return messages / (time.perf_counter() - started)


def bare_kestrel(bench: KestrelBench, messages: int) -> float:
    """Close one item and open the next with one command, on one connection."""
    host, _, port = bench.servers[0].address.rpartition(":")
    with socket.create_connection((host, int(port))) as link, link.makefile("rb") as answers:
        started, done = time.perf_counter(), 0
        while done < messages:
            link.sendall(f"get {bench.queue}/close/open\r\n".encode())
            head = answers.readline()
            if head.startswith(b"VALUE"):
                answers.read(int(head.split()[3]) + 2)
                answers.readline()
                done += 1
        link.sendall(f"get {bench.queue}/close\r\n".encode())
        answers.readline()
        return messages / (time.perf_counter() - started)


def bare_redis(bench: RedisBench, messages: int) -> float:
    """Read a thousand entries a call, ack and delete them with a pipeline."""
    with client_of(bench.server) as client:
        client.execute_command("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
        started, done = time.perf_counter(), 0
        while done < messages:
            answer = client.execute_command(
                "XREADGROUP", "GROUP", "g", "bare", "COUNT", 1000, "STREAMS", "s", ">"
            )
            ids = [entry for _, entries in answer or () for entry, _ in entries]
            if ids:
                pipeline = client.pipeline()
                pipeline.execute_command("XACK", "s", "g", *ids)
                pipeline.execute_command("XDEL", "s", *ids)
                pipeline.execute()
            done += len(ids)
        return messages / (time.perf_counter() - started)


def bare_postgres(bench: PostgresBench, messages: int) -> float:
    """Lock a thousand rows and delete them in one transaction: a lease that is a row lock."""
    take = "SELECT id, body FROM q.jobs ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED"
    with psycopg.connect(bench.server.dsn, autocommit=True) as connection:
        started, done = time.perf_counter(), 0
        while done < messages:
            with connection.transaction():
                ids = [number for number, _ in connection.execute(take)]
                connection.execute("DELETE FROM q.jobs WHERE id = ANY(%s)", [ids])
            done += len(ids)
        return messages / (time.perf_counter() - started)


def bare_rabbitmq(bench: RabbitBench, messages: int) -> float:
    """Consume with a prefetch of 1,000, and ack a hundred messages at a time."""
    with bench.channel() as channel:
        channel.basic_qos(prefetch_count=1000)
        started = time.perf_counter()
        for done, (method, _, _) in enumerate(channel.consume(bench.queue), start=1):
            if done % 100 == 0 or done == messages:
                channel.basic_ack(method.delivery_tag, multiple=True)
            if done == messages:
                break
        channel.cancel()
        return messages / (time.perf_counter() - started)


def through_a_topology(spout: QueueSpout, messages: int) -> float:
    """Run a topology until it has acked all messages; return its rate after the warm-up.

    Raises:
        TimeoutError: the messages were not acked in time.
    """
    builder = ss.TopologyBuilder()
    builder.set_spout("queue", spout)
    builder.set_bolt("ack", Ack(), 2).shuffle_grouping("queue")
    with (
        tempfile.TemporaryDirectory() as folder,
        ss.submit(
            builder.create_topology(), name="queues", master="local[2]", checkpoint=folder
        ) as run,
    ):
        deadline = time.monotonic() + LONGEST_SECS
        began, first, acked = 0.0, 0, 0
        while acked < messages:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{acked:,} of {messages:,} messages: {run.statistics()}")
            run.wait_until_drained(LOOK_SECS)
            acked = run.statistics().acked
            if not first and acked >= WARM_UP * messages:
                began, first = time.perf_counter(), acked
        return (messages - first) / (time.perf_counter() - began)


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A queue that is measured, and how many messages take some seconds."""

    name: str
    messages: int
    server: Callable[[], Any]
    bench: Callable[[Any], Any]
    bare: Callable[[Any, int], float]


SYSTEMS = {
    "sqs": System(
        name="SQS",
        messages=5_000,
        server=ElasticMQServer,
        bench=lambda server: SQSBench(server, lease_secs=30),
        bare=bare_sqs,
    ),
    "kestrel": System(
        name="Kestrel",
        messages=50_000,
        server=KestrelServer,
        bench=KestrelBench,
        bare=bare_kestrel,
    ),
    "redis": System(
        name="Redis",
        messages=200_000,
        server=RedisServer,
        bench=lambda server: RedisBench(server, lease_secs=30),
        bare=bare_redis,
    ),
    "postgres": System(
        name="PostgreSQL",
        messages=200_000,
        server=PostgresServer,
        bench=lambda server: PostgresBench(server, lease_secs=30),
        bare=bare_postgres,
    ),
    "rabbitmq": System(
        name="RabbitMQ",
        messages=100_000,
        server=RabbitServer,
        bench=RabbitBench,
        bare=bare_rabbitmq,
    ),
}


def measure(system: System, messages: int) -> bool:
    """Run the three, and print their rates; return whether the topology is fast enough."""
    bodies = [f"message {number}".encode() for number in range(messages)]
    with system.server() as server:
        bench = system.bench(server)
        bench.send(bodies)
        bare = system.bare(bench, messages)
        bench.send(bodies)
        spout = bench.spout()
        ours = through_a_topology(spout, messages)
        left = bench.counts()
    listed = through_a_topology(ListSpout(messages, spout), messages)
    limit = 1 / (1 / bare + 1 / listed)
    print(
        f"{system.name}: {ours:,.0f}/s; the bare client {bare:,.0f}/s: {ours / bare:.2f}; from a "
        f"list {listed:,.0f}/s: {ours / listed:.2f}; both {limit:,.0f}/s: {ours / limit:.2f}",
        flush=True,
    )
    if left != (0, 0):
        print(f"  (ready, pending) on the server in the end: {left}")
    return left == (0, 0) and ours >= TARGET * limit


def main() -> int:
    """Measure the chosen queues; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queues", nargs="*", metavar="QUEUE", help=", ".join(SYSTEMS))
    parser.add_argument("--scale", type=float, default=1.0, help="times as many messages")
    options = parser.parse_args()
    if unknown := set(options.queues) - set(SYSTEMS):
        parser.error(f"{', '.join(sorted(unknown))} is none of {', '.join(SYSTEMS)}")
    chosen = [SYSTEMS[name] for name in options.queues or SYSTEMS]
    good = [measure(system, int(system.messages * options.scale)) for system in chosen]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
