"""Progress in ZooKeeper: the classic nodes, real servers."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient

import sparkstorm as ss
from sparkstorm.kafka import KafkaSpout, ZooKeeperProgress
from sparkstorm.testing import LocalRunner
from sparkstorm.testing.servers import ZooKeeperServer

pytestmark = pytest.mark.e2e

OLD_NODE = {
    "topology": {"id": "fb57d5f4-3f41-4d2e-a5cc-5b1c0d5a1e6f", "name": "orders"},
    "offset": 42,
    "partition": 0,
    "broker": {"host": "kafka-3.example.com", "port": 9092},
    "topic": "",
}
"""As Storm 0.9's spout wrote it."""


@pytest.fixture(scope="module")
def server(started: Callable[[ZooKeeperServer], ZooKeeperServer]) -> Iterator[ZooKeeperServer]:
    """ZooKeeper, for the tests of this file."""
    with started(ZooKeeperServer()) as zookeeper:
        yield zookeeper


@pytest.fixture
def zookeeper(server: ZooKeeperServer) -> Iterator[KazooClient]:
    """A client."""
    client = KazooClient(server.address)
    client.start()
    yield client
    client.stop()
    client.close()


class Sink(ss.BasicBolt):
    """Emits offsets, and fails at one."""

    outputs = ("offset",)

    def __init__(self, bad: int = -1) -> None:
        self.bad = bad

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["offset"] == self.bad:
            raise ValueError("stuck")
        collector.emit([tup["offset"]])


def run(kafka: Any, topics: Any, progress: Any, bad: int = -1, **more: Any) -> list[int]:
    """Run until nothing moves; return the offsets that were processed."""
    builder = ss.TopologyBuilder()
    given = {"until": "latest", "group": "unused", "progress": progress, **more}
    builder.set_spout("in", KafkaSpout(topics, bootstrap_servers=kafka.address, **given))
    builder.set_bolt("sink", Sink(bad)).shuffle_grouping("in")
    seen: list[int] = []
    with LocalRunner(
        builder.create_topology(),
        name="new-topology",
        config=ss.Config(retry_backoff_secs=1000.0, retry_backoff_max_secs=1000.0),
        taps=["sink"],
        on_tap=lambda key, task, rows: seen.extend(row[0] for row in rows),
    ) as runner:
        while not (runner.coordinator.drained or (bad >= 0 and seen)):
            runner.step()
        runner.run_until_idle()
    return sorted(seen)


def progress_of(server: ZooKeeperServer, id: str, **more: Any) -> ZooKeeperProgress:
    return ZooKeeperProgress(hosts=server.address, root="/kafka-spout", id=id, **more)


def test_a_node_of_the_old_spout_is_taken_up(
    kafka: Any, server: ZooKeeperServer, zookeeper: KazooClient
) -> None:
    """It resumes there, and leaves a node that the old spout could read."""
    topic, path = kafka.topic(), "/kafka-spout/orders/partition_0"
    kafka.put(topic, range(100))
    zookeeper.create(path, json.dumps({**OLD_NODE, "topic": topic}).encode(), makepath=True)
    assert run(kafka, topic, progress_of(server, "orders")) == list(range(42, 100))
    node = json.loads(zookeeper.get(path)[0])
    host, _, port = kafka.address.partition(":")
    topology = node.pop("topology")
    assert topology["name"] == "new-topology"
    assert topology["id"].startswith("new-topology-")
    assert node == {
        "offset": 100,
        "partition": 0,
        "broker": {"host": host, "port": int(port)},
        "topic": topic,
        "acks": "",
    }


def test_acks_beyond_a_stuck_message_are_kept(kafka: Any, server: ZooKeeperServer) -> None:
    topic = kafka.topic()
    kafka.put(topic, range(50))
    progress = progress_of(server, "stuck")
    assert run(kafka, topic, progress, bad=7) == [n for n in range(50) if n != 7]
    assert run(kafka, topic, progress) == [7]
    assert run(kafka, topic, progress) == []


def test_two_spouts_of_one_id_do_not_overwrite_each_other(
    kafka: Any, server: ZooKeeperServer, zookeeper: KazooClient
) -> None:
    """Defect 7: the topic of a node has to be the spout's."""
    one, other = kafka.topic(), kafka.topic()
    for topic in (one, other):
        kafka.put(topic, range(5))
    progress = progress_of(server, "shared")
    assert run(kafka, one, progress) == list(range(5))
    with pytest.raises(ss.CheckpointError, match=f"the topic '{one}', not of '{other}'"):
        run(kafka, other, progress)
    assert json.loads(zookeeper.get("/kafka-spout/shared/partition_0")[0])["topic"] == one


def test_several_topics_have_nodes_of_their_own(
    kafka: Any, server: ZooKeeperServer, zookeeper: KazooClient
) -> None:
    """As the later of Storm's spouts had them for patterns."""
    one, other = kafka.topic(), kafka.topic()
    kafka.put(one, range(3))
    kafka.put(other, range(5))
    pattern = re.compile(f"{one}|{other}")
    run(kafka, pattern, progress_of(server, "many"))
    for topic, offset in ((one, 3), (other, 5)):
        node = json.loads(zookeeper.get(f"/kafka-spout/many/{topic}/partition_0")[0])
        assert (node["topic"], node["offset"]) == (topic, offset)


def test_force_from_start_passes_over_the_node(kafka: Any, server: ZooKeeperServer) -> None:
    topic = kafka.topic()
    kafka.put(topic, range(5))
    progress = progress_of(server, "forced")
    assert run(kafka, topic, progress) == list(range(5))
    assert run(kafka, topic, progress) == []
    assert run(kafka, topic, progress, force_from_start=True) == list(range(5))


def test_what_is_no_progress_is_refused(
    kafka: Any, server: ZooKeeperServer, zookeeper: KazooClient
) -> None:
    topic = kafka.topic()
    zookeeper.create("/kafka-spout/odd/partition_0", b"?", makepath=True)
    with pytest.raises(ss.CheckpointError, match="odd/partition_0 does not hold the progress"):
        run(kafka, topic, progress_of(server, "odd"))


def test_zookeeper_that_is_away_is_named(kafka: Any) -> None:
    """After the time that was given for it; its password is in no message."""
    progress = ZooKeeperProgress(
        hosts="127.0.0.1:1", root="/r", id="x", auth=[("digest", "u:secret")], timeout_secs=0.5
    )
    with pytest.raises(ss.SpoutConnectionError, match=r"ZooKeeper at 127\.0\.0\.1:1") as caught:
        run(kafka, kafka.topic(), progress, connect_secs=0.0)
    assert "secret" not in f"{caught.value} {progress!r}"
