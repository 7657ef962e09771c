"""Enrich a topic: read orders from Kafka, add the customer's name, write to another topic.

    sparkstorm run examples/kafka_enrich.py -- localhost:9092 orders orders-enriched orders-dead
    python examples/kafka_enrich.py --demo

An order is JSON, ``{"order": 1, "customer": 7}``. A bad order (no JSON, or an unknown customer)
goes to the topic of dead letters, with the reason in its headers. Other orders go on meanwhile,
and the consumer group's offsets move past the bad order. ``--demo`` starts a broker (Java and a
network needed), puts some orders into it, and ends when all have been processed.
"""

import json
import sys
from typing import Any

import sparkstorm as ss
from sparkstorm.kafka import DeadLetterTopic, KafkaBolt, KafkaSpout

NAMES = {1: "Ada", 2: "Grace", 3: "Edsger"}


class Enrich(ss.BasicBolt):
    """Adds the name of the customer. An error fails the one order, and no other."""

    outputs = ("key", "value")

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        order: dict[str, Any] = tup["value"]
        name = NAMES[order["customer"]]
        collector.emit([str(order["order"]), {**order, "name": name}])


def topology(args: list[str]) -> ss.Topology:
    """Wire the enrichment; arguments: broker, source topic, target topic, topic of dead letters."""
    if len(args) != 4:
        raise ss.ConfigError("name broker, source, target and dead letters: localhost:9092 a b c")
    return wire(*args)


def wire(
    servers: str, source: str, target: str, dead: str, until: str | None = None
) -> ss.Topology:
    """Wire spout, enrichment and sink."""
    builder = ss.TopologyBuilder()
    spout = KafkaSpout(source, bootstrap_servers=servers, group="enrich", value="json", until=until)
    builder.set_spout("orders", spout).add_configuration(
        "dead_letter_sink", DeadLetterTopic(dead, bootstrap_servers=servers)
    ).add_configuration("max_retries", 3)
    builder.set_bolt("enrich", Enrich(), parallelism=2).shuffle_grouping("orders")
    sink = KafkaBolt(
        target,
        bootstrap_servers=servers,
        key="key",
        key_format="string",
        value_format="json",
    )
    builder.set_bolt("sink", sink, parallelism=2).local_or_shuffle_grouping("enrich")
    return builder.create_topology()


def fill(servers: str, topics: list[str]) -> None:
    """Make the topics, and put a hundred orders and a line that is no order into the first."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([NewTopic(name, 1, 1) for name in topics]).values():
        made.result()
    producer = Producer({"bootstrap.servers": servers})
    for number in range(100):
        order = {"order": number, "customer": 1 + number % 3}
        producer.produce(topics[0], json.dumps(order).encode())
    producer.produce(topics[0], b"{ no order")
    producer.flush()


def demo() -> None:
    """Start and fill a broker, and run the enrichment on it."""
    from sparkstorm.testing.servers import KafkaServer

    topics = ["orders", "orders-enriched", "orders-dead"]
    with KafkaServer() as server:
        fill(server.address, topics)
        run = ss.submit(wire(server.address, *topics, until="latest"), name="kafka-enrich")
        run.wait_until_drained()
        statistics = run.stop()
    [partition] = statistics.partitions["orders"]
    print(f"{statistics.acked} orders enriched, {statistics.dead_letters} dead letter")
    print(f"committed up to {partition.committed}, {partition.lag} behind")


if __name__ == "__main__":
    if sys.argv[1:] == ["--demo"]:
        demo()
    else:
        ss.submit(topology(sys.argv[1:]), name="kafka-enrich").await_termination()
