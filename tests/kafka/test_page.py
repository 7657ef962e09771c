"""Why is my offset stuck? The page's answer on a real broker."""

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import sparkstorm as ss
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.clock import SystemClock
from sparkstorm.control.registry import Registry
from sparkstorm.dead_letters import LetterStore
from sparkstorm.kafka import KafkaSpout
from sparkstorm.testing import LocalRunner, wait_until
from sparkstorm.ui import make_app
from sparkstorm.ui.machine import Machine
from tests.tools.steered import listed

pytestmark = pytest.mark.e2e


class Price(ss.BasicBolt):
    """Knows no price of some items."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["value"] == "unknown":
            raise KeyError(tup["value"])


def test_the_page_says_which_message_holds_an_offset_and_why(kafka: Any, tmp_path: Path) -> None:
    """The numbers are the broker's; the other partition moves on."""
    topic = kafka.topic(2)
    kafka.put(topic, ["tea", "tea", "unknown", "milk", "tea", "tea"], 0)
    kafka.put(topic, ["tea", "milk"], 1)
    spout = KafkaSpout(
        topic, bootstrap_servers=kafka.address, group=topic, value="string", commit_secs=0.0
    )
    builder = ss.TopologyBuilder()
    builder.set_spout("orders", spout)
    builder.set_bolt("price", Price()).shuffle_grouping("orders")
    files = MemoryFiles()
    config = ss.Config(max_retries=10, retry_backoff_secs=600.0)
    with (
        LocalRunner(builder.create_topology(), name="shop", files=files, config=config) as runner,
        listed(tmp_path, runner, LetterStore(files), SystemClock()),
    ):
        client = TestClient(make_app(Machine(Registry(tmp_path))), base_url="http://localhost")
        rest = "/api/v1/topology/shop-a1b2"

        def committed() -> tuple[int, int]:
            runner.step()
            runner.plan_batch()
            return kafka.committed(topic, topic, 0)[0], kafka.committed(topic, topic, 1)[0]

        wait_until(lambda: committed() == (2, 2))
        found = client.get(f"{rest}/partitions").json()
        stuck, moving = sorted(found, key=lambda one: str(one["partition"]))
        page = client.get("/topologies/shop-a1b2/partitions").text
        (message,) = client.get(f"{rest}/messages", params={"state": "retry"}).json()["messages"]
    assert (stuck["committed"], stuck["oldest"], stuck["acked_beyond"]) == (2, 2, 3)
    assert (stuck["held_by"], stuck["in_retry"]) == ("price", 1)
    assert "KeyError" in stuck["held_why"]
    assert (moving["committed"], moving["oldest"], moving["lag"]) == (2, None, 0)
    assert "The message at offset 2 failed in price: KeyError" in page
    assert "3 later messages that are acked cannot be committed" in page
    assert message["name"] == f"{topic}/0/2"
