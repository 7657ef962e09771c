"""Components on storm.py, the adapter that Apache Storm publishes."""

# mypy: ignore-errors
# Written as users of the adapter write: without types, and the adapter is not in our Python.

import sys
from collections import Counter

import storm


class Sentences(storm.Spout):
    """Ids are numbers; what fails is emitted again."""

    def initialize(self, conf, context):
        self.left = list(range(100))

    def nextTuple(self):
        if self.left:
            storm.emit(["the quick brown fox"], id=self.left.pop())

    def fail(self, msg_id):
        self.left.append(msg_id)


class Split(storm.BasicBolt):
    """Waits for the task ids of each emit."""

    def process(self, tup):
        for word in tup.values[0].split():
            storm.emit([word])


class Count(storm.Bolt):
    """Anchors, acks and logs by itself."""

    def initialize(self, conf, context):
        self.counts = Counter()
        storm.logWarn("ready")

    def process(self, tup):
        self.counts[tup.values[0]] += 1
        storm.emit([tup.values[0], self.counts[tup.values[0]]], anchors=[tup])
        storm.ack(tup)


globals()[sys.argv[1]]().run()
