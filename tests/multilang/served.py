"""Components that the tests serve to a parent; some are nasty on purpose."""

import os
import subprocess
from typing import Any

import sparkstorm as ss

print("printed while the module is loaded")  # noqa: T201


class Split(ss.BasicBolt):
    """Emits words; prints by every way there is; dislikes empty texts."""

    outputs = "value"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        print("printed by Python")  # noqa: T201
        os.write(1, b"printed by C\n")
        subprocess.run(["echo", "printed by a child"], check=True)
        if not tup[0]:
            raise ValueError("an empty text")
        for word in tup[0].split():
            collector.emit([word])


class Hold(ss.Bolt):
    """Acks what it has at the end of what came; emits anchored to two."""

    outputs = "value"

    def __init__(self, suffix: str = "!") -> None:
        self.suffix = suffix

    def prepare(self, config: Any, context: ss.TaskContext, collector: ss.BoltCollector) -> None:
        self.collector = collector
        self.held: list[ss.Tuple] = []

    def execute(self, tup: ss.Tuple) -> None:
        self.held.append(tup)

    def finish_batch(self) -> None:
        for tup in self.held:
            self.collector.emit([f"{tup[0]}{self.suffix}"], anchors=tup)
            self.collector.ack(tup)
        self.held.clear()


class Wait(ss.BasicBolt):
    """Waits as coroutines do."""

    outputs = "value"

    async def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([tup.values[0]])


class Odd(ss.BasicBolt):
    """Emits what JSON does not have, and what no stream has."""

    outputs = "value"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        match tup[0]:
            case "bytes":
                collector.emit([b"x"])
            case "stream":
                collector.emit(["x"], stream="nowhere")
            case "width":
                collector.emit(["x", "y"])
            case "text":
                collector.emit("x")
            case other:
                collector.emit([other])


class Numbers(ss.Spout):
    """Emits numbers; ids of every kind; remembers what it hears."""

    outputs = "value"

    def __init__(self, limit: int = 8) -> None:
        self.limit = limit

    def open(self, config: Any, context: ss.TaskContext, collector: ss.SpoutCollector) -> None:
        self.collector = collector
        self.next = 0
        self.again: list[Any] = []

    def next_tuple(self) -> None:
        if self.again:
            msg_id = self.again.pop()
            self.collector.emit([msg_id[1]], msg_id=msg_id)
        elif self.next < self.limit:
            self.next += 1
            self.collector.emit([self.next], msg_id=("number", self.next))

    def ack(self, msg_id: Any) -> None:
        assert msg_id[0] == "number"

    def fail(self, msg_id: Any, failure: ss.Failure) -> None:
        assert failure.reason is ss.Reason.FAILED
        self.again.append(msg_id)


class Keeps(ss.StatefulBolt):
    """Keeps state, which no other parent has."""

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.ack(tup)


ready = Split()
