"""Bolts that a real Storm runs as children."""

import sparkstorm as ss


class Split(ss.BasicBolt):
    """Cuts a sentence into words."""

    outputs = "word"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        for word in tup["sentence"].split():
            collector.emit([word])


class AckLate(ss.Bolt):
    """The same, with the acks at the end of what has come."""

    outputs = "word"

    def prepare(self, config: object, context: object, collector: ss.BoltCollector) -> None:
        self.collector = collector
        self.waiting: list[ss.Tuple] = []

    def execute(self, tup: ss.Tuple) -> None:
        for word in tup["sentence"].split():
            self.collector.emit([word], anchors=tup)
        self.waiting.append(tup)

    def finish_batch(self) -> None:
        for tup in self.waiting:
            self.collector.ack(tup)
        self.waiting.clear()
