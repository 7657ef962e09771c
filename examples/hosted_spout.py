"""A spout as in Storm: the spout decides how to treat a failed message.

    sparkstorm run examples/hosted_spout.py --available-now

The bolt fails every order at the first try. The spout emits the order again, up to three times.
"""

from collections import deque

import sparkstorm as ss

TRIES = 3


class Orders(ss.Spout):
    """Stands for a queue; lives in the driver, on a thread of its own."""

    outputs = "order long, try long"

    def __init__(self, count: int) -> None:
        self.count = count

    def open(
        self, config: ss.Config, context: ss.TaskContext, collector: ss.SpoutCollector
    ) -> None:
        self.waiting = deque((order, 1) for order in range(self.count))
        self.left = self.count

    def next_tuple(self) -> None:
        if self.waiting:
            order, attempt = self.waiting.popleft()
            self.collector.emit([order, attempt], msg_id=order)

    def ack(self, msg_id: int) -> None:
        self.left -= 1

    def fail(self, msg_id: int, failure: ss.Failure) -> None:
        if failure.attempt < TRIES:
            self.waiting.append((msg_id, failure.attempt + 1))
        else:
            self.collector.give_up(msg_id, failure)
            self.left -= 1

    def exhausted(self) -> bool:
        return self.left == 0


class Ship(ss.Bolt):
    """Needs two tries for each order."""

    outputs = "order long"

    def execute(self, tup: ss.Tuple) -> None:
        if tup["try"] == 1:
            self.collector.fail(tup, "the van is full")
            return
        self.collector.emit([tup["order"]], anchors=tup)
        self.collector.ack(tup)


def topology(args: list[str]) -> ss.Topology:
    """Wire the orders; the first argument says how many."""
    builder = ss.TopologyBuilder()
    builder.set_spout("orders", Orders(int(args[0]) if args else 20))
    builder.set_bolt("ship", Ship(), parallelism=2).shuffle_grouping("orders")
    return builder.create_topology()
