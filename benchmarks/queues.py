"""Messages per second from each queue, beside the bare client's own loop.

``python -m benchmarks.queues [sqs] [kestrel] [redis] [postgres] [rabbitmq] [--messages 5000]``. The
bare loop takes, reads and deletes by the client's own calls, one after the other. The spout runs
alone, in this process: each message is acked as it is emitted. So the figure shows what the lease
keeper costs; a topology adds its own work. Exit code 1 if a ratio is below 0.5, unless the spout
does 5,000 messages a second: from there on the driver's Python is the limit, whatever the client.
"""

import argparse
import socket
import sys
import time
from collections.abc import Callable

import psycopg

from sparkstorm.testing.queues import QueueBench, SpoutPlay
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
DRIVER_LIMIT = 5000.0
QUEUES = ["sqs", "kestrel", "redis", "postgres", "rabbitmq"]


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


def through_the_spout(bench: QueueBench, messages: int) -> float:
    """Ack each message as it is emitted, until the server has deleted all."""
    with SpoutPlay(bench.spout()) as play:
        started = time.perf_counter()
        while sum(play.emits.values()) < messages or play.spout.counts.settled < messages:
            play.pump(100)
            if not play.under_way:
                time.sleep(0.001)  # as a task's thread rests: else it keeps the client off the GIL
            play.ack(*list(play.under_way))
        return messages / (time.perf_counter() - started)


def measure(name: str, bench: QueueBench, bare: Callable[[int], float], messages: int) -> bool:
    """Fill, run both in turns, and print; return whether the ratio is high enough."""
    bodies = [f"message {number}".encode() for number in range(messages)]
    bench.send(bodies)
    alone = bare(messages)
    bench.send(bodies)
    ours = through_the_spout(bench, messages)
    print(f"{name}: {ours:,.0f}/s, the bare client {alone:,.0f}/s: {ours / alone:.2f}")
    return ours / alone >= TARGET or ours >= DRIVER_LIMIT


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queues", nargs="*", default=QUEUES)
    parser.add_argument("--messages", type=int, default=5000)
    options = parser.parse_args()
    good = True
    if "sqs" in options.queues:
        with ElasticMQServer() as server:
            sqs = SQSBench(server, lease_secs=30)
            good &= measure("SQS", sqs, lambda n: bare_sqs(sqs, n), options.messages)
    if "kestrel" in options.queues:
        with KestrelServer() as server:
            kestrel = KestrelBench(server)
            good &= measure(
                "Kestrel", kestrel, lambda n: bare_kestrel(kestrel, n), options.messages
            )
    if "redis" in options.queues:
        with RedisServer() as store:
            redis = RedisBench(store, lease_secs=30)
            good &= measure("Redis", redis, lambda n: bare_redis(redis, n), options.messages)
    if "postgres" in options.queues:
        with PostgresServer() as base:
            table = PostgresBench(base, lease_secs=30)
            good &= measure(
                "PostgreSQL", table, lambda n: bare_postgres(table, n), options.messages
            )
    if "rabbitmq" in options.queues:
        with RabbitServer() as broker:
            rabbit = RabbitBench(broker)
            good &= measure(
                "RabbitMQ", rabbit, lambda n: bare_rabbitmq(rabbit, n), options.messages
            )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
