"""The driver program of test_kill.py: reads a topic, and writes down what it has processed.

Of the numbers in the topic, each hundredth fails once, each thousandth (and seven) for ever.
With ``--sink`` it counts them by their last two digits instead, exactly once, into another topic.
With ``--endless`` it goes on until it is killed; else it ends where the topic ends at the start.
"""

import argparse
import json
import logging
import os
import time
from pathlib import Path

import sparkstorm as ss
from sparkstorm.kafka import KafkaSink, KafkaSpout

_logger = logging.getLogger("orders")


class Note(ss.Bolt):
    """Writes number, partition, offset and time into a file of its process, then acks."""

    transient = ("seen",)

    def prepare(
        self, config: ss.Config, context: ss.TaskContext, collector: ss.BoltCollector
    ) -> None:
        self.folder = Path(config.user["witness"])
        self.seen: list[str] = []

    def execute(self, tup: ss.Tuple) -> None:
        if fails(tup):
            self.collector.fail(tup, "not this one")
            return
        place = f"{tup['partition']} {tup['offset']}"
        self.seen.append(f"{tup['value']} {place} {time.time():.3f}")
        self.collector.ack(tup)

    def finish_batch(self) -> None:
        with (self.folder / f"{os.getpid()}.txt").open("a") as file:
            file.writelines(f"{line}\n" for line in self.seen)
        self.seen = []


class Count(ss.StatefulBolt):
    """Counts numbers by their last two digits."""

    outputs = ("number", "digits", "count")

    def execute(self, tup: ss.Tuple) -> None:
        digits = tup["value"][-2:]
        count = self.state.get(digits, 0) + 1
        self.state.put(digits, count)
        self.collector.emit([int(tup["value"]), digits, count], anchors=tup)
        if fails(tup):
            self.collector.fail(tup, "not this one")
        else:
            self.collector.ack(tup)


def fails(tup: ss.Tuple) -> bool:
    """Whether it does, at this attempt."""
    number = int(tup["value"])
    return number % 1000 == 7 or (number % 100 == 1 and tup.attempt == 1)


def tell(told: ss.Statistics) -> None:
    """Say where each partition stands, in one line."""
    partitions = {
        one.partition: {
            "committed": one.committed,
            "end": one.committed + one.lag,
            "in_flight": one.in_flight,
            "expired": one.expired,
            "log_cuts": one.log_cuts,
        }
        for one in told.partitions["orders"]
    }
    figures = {"batches": told.batches, "acked": told.acked, "partitions": partitions}
    _logger.warning("stands %s", json.dumps(figures))


def main() -> None:
    # one line each, with its time: the log is evidence
    logging.basicConfig(format="%(created).3f %(process)d %(message)s")
    parser = argparse.ArgumentParser()
    parser.add_argument("--brokers", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--witness", required=True)
    parser.add_argument("--sink")
    parser.add_argument("--endless", action="store_true")
    options = parser.parse_args()
    spout = KafkaSpout(
        options.topic,
        bootstrap_servers=options.brokers,
        group="orders",
        value="string",
        until=None if options.endless else "latest",
        on_reset="follow",
        refresh_secs=1.0,
        timeout_secs=5.0,
    )
    builder = ss.TopologyBuilder()
    builder.set_spout("orders", spout)
    if options.sink is None:
        builder.set_bolt("note", Note(), parallelism=2).shuffle_grouping("orders")
    else:
        builder.set_bolt("count", Count()).shuffle_grouping("orders")
        sink = KafkaSink(
            options.sink,
            bootstrap_servers=options.brokers,
            value=lambda tup: list(tup.values),
            value_format="json",
            timeout_secs=20.0,
        )
        builder.set_bolt("sink", sink, parallelism=2).shuffle_grouping("count")
    config = {
        "processing_guarantee": "at-least-once" if options.sink is None else "exactly-once",
        "batch_min_messages": 10_000,
        "max_retries": 2,
        "retry_backoff_secs": 0.2,
        "partitions": 2,
        "user.witness": options.witness,
    }
    with ss.submit(
        builder.create_topology(),
        name="orders",
        master="local[2,4]",
        checkpoint=options.checkpoint,
        config=config,
    ) as run:
        while not run.wait_until_drained(0.5):
            tell(run.statistics())
    tell(run.statistics())
    _logger.warning("drained %s", run.statistics())


if __name__ == "__main__":
    main()
