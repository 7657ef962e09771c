"""Components of streamparse, as its users write them."""

# mypy: ignore-errors
# Written as users of the adapter write: without types, and the adapter is not in our Python.

from collections import Counter

from streamparse import BatchingBolt, Bolt, ReliableSpout


class Sentences(ReliableSpout):
    """Each sentence until it is acked."""

    def initialize(self, conf, ctx):
        self.sent = 0

    def next_tuple(self):
        if self.sent < 200:
            self.emit(["the quick brown fox"], tup_id=self.sent)
            self.sent += 1


class Split(Bolt):
    """Uses the fields' names, which the handshake tells; prints, which is redirected."""

    def process(self, tup):
        print("splitting")  # noqa: T201
        for word in tup.values.sentence.split():
            self.emit([word])


class Count(Bolt):
    """Counts in its memory."""

    def initialize(self, conf, ctx):
        self.counts = Counter()

    def process(self, tup):
        word = tup.values[0]
        self.counts[word] += 1
        self.emit([word, self.counts[word]])


class Groups(BatchingBolt):
    """Acks with each second tick."""

    ticks_between_batches = 1

    def group_key(self, tup):
        return tup.values[0]

    def process_batch(self, key, tups):
        self.emit([key, len(tups)])


class Broken(Bolt):
    """Raises for one word."""

    def process(self, tup):
        if tup.values[0] == "bad":
            raise ValueError("a bad word")
        self.emit([tup.values[0]])
