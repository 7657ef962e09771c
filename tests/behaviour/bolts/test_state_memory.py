"""State that has no room in the workers' memory: read again, never wrong, and said once."""

from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.testing import FeederSpout


class Remember(ss.StatefulBolt):
    """Counts by key, by attribute, and holds each tuple until the next of its key."""

    outputs = "key string, count long, named long, before string"
    stateful = True

    def __init__(self) -> None:
        self.total = 0

    def init_state(self, state: ss.State) -> None:
        super().init_state(state)
        self.named, self.waiting = state.named("other", ttl_secs=3600), state.tuples("waiting")

    def execute(self, tup: ss.Tuple) -> None:
        key = tup["key"]
        self.total += 1
        before = self.waiting.pop(key)
        counts = [self.state.add(key), self.named.add(key)]
        self.waiting.add(key, tup)
        texts = "".join(one["text"] for one in before)
        self.collector.emit([key, *counts, texts], anchors=before)
        for one in before:
            self.collector.ack(one)


@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
def test_state_without_room_is_the_same_state(run_topology: Any, backend: str) -> None:
    """No byte of state stays in a worker: each batch reads what the ones before it committed."""
    feeder, builder = FeederSpout("key string, text string"), ss.TopologyBuilder()
    builder.set_spout("texts", feeder)
    builder.set_bolt("remember", Remember(), 3).fields_grouping("texts", ["key"])
    config = {"state_memory_bytes": 0, "state_backend": backend, "message_timeout_secs": 600}
    with run_topology(builder.create_topology(), config) as play:
        for batch in range(4):
            for key in "abcde":
                feeder.feed([key, f"{key}{batch}"], msg_id=f"{key}{batch}")
            play.settle()
        assert sorted(play.emitted("remember")) == [
            (key, batch + 1, batch + 1, f"{key}{batch - 1}" if batch else "")
            for key in "abcde"
            for batch in range(4)
        ]
        assert sorted(feeder.acked) == sorted(f"{key}{n}" for key in "abcde" for n in range(3))
        assert (play.statistics().pending, play.statistics().failed) == (5, 0)
        texts = play.texts("remember")
        assert any("Raise topology.state.memory.bytes (0)" in text for text in texts), texts
        assert len(texts) < 4 * 3, "once in each process, not in each batch"
