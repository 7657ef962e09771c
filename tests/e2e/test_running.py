"""The commands on a running topology: found, seen, steered and ended from another process."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from sparkstorm.testing import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.process]

SHOP = """
import time
import sparkstorm as ss

class Orders(ss.spouts.ReplayingSpout):
    outputs = "item string"
    number = 0

    def next_message(self):
        self.number += 1
        item = "unknown" if self.number == 10 else "tea"
        if self.number > 10:
            time.sleep(0.01)
        return f"order-{self.number}", [item]

class Price(ss.BasicBolt):
    def execute(self, tup, collector):
        if tup["item"] == "unknown":
            raise KeyError(tup["item"])

builder = ss.TopologyBuilder()
builder.set_spout("orders", Orders())
builder.set_bolt("price", Price(), 2).shuffle_grouping("orders")
topology = builder.create_topology()
"""


def answers(page: str) -> bool:
    """Whether a page is served."""
    try:
        urlopen(page).close()  # noqa: S310 - our own server
    except OSError:
        return False
    return True


class Shop:
    """``sparkstorm run`` on an endless topology with one stuck message."""

    def __init__(self, folder: Path) -> None:
        (folder / "shop.py").write_text(SHOP)
        self._env = os.environ | {"SPARKSTORM_REGISTRY": str(folder / "registry")}
        self._said = folder / "said"
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "sparkstorm", "run", str(folder / "shop.py")),
                    *("--master", "local[2]", "--checkpoint", str(folder / "checkpoint")),
                    *("-c", "max_retries=1000", "-c", "retry_backoff_max_secs=1"),
                    *("--ui", "--ui-port", "0"),
                ],
                env=self._env,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """All that it printed."""
        return self._said.read_text()

    def ask(self, *arguments: str, answers: str = "") -> subprocess.CompletedProcess[str]:
        """Run another command."""
        return subprocess.run(
            [sys.executable, "-m", "sparkstorm", *arguments],
            input=answers,
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
        )

    def json(self, *arguments: str) -> Any:
        """Return the JSON of another command."""
        done = self.ask(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    made = Shop(tmp_path_factory.mktemp("shop"))
    try:
        wait_until(lambda: "retry" in made.ask("messages", "shop", "--json").stdout, secs=180)
        yield made
    finally:
        made.process.kill()
        made.process.wait()


def test_a_running_topology_is_listed_with_its_counts(shop: Shop) -> None:
    found = shop.json("list")
    assert (found["name"], found["status"]) == ("shop", "ACTIVE")
    assert found["pid"] == shop.process.pid
    assert found["situation"]["acked"] > 0


def test_the_stuck_message_is_found_with_its_bolt_and_its_line(shop: Shop) -> None:
    wait_until(
        lambda: (
            len(shop.json("trace", "shop", "order-10")["attempts"]) > 2
            and shop.json("trace", "shop", "order-10")["attempts"][1]["ended"]
        ),
    )
    shown = shop.ask("messages", "shop").stdout
    assert "order-10" in shown
    assert "KeyError" in shown
    traced = shop.ask("trace", "shop", "order-10").stdout
    assert "shop.py" in traced
    assert "price (task" in traced
    second = shop.json("trace", "shop", "order-10")["attempts"][1]
    (node,) = second["tree"]["nodes"]
    assert (node["component"], node["state"]) == ("price", "failed")
    assert node["values"] == {"item": "'unknown'"}


def test_status_shows_components(shop: Shop) -> None:
    shown = shop.ask("status", "shop").stdout
    assert "ACTIVE" in shown
    assert "price" in shown
    assert shop.json("status", "shop")["topology"]["name"] == "shop"


def test_a_wrong_name_says_what_runs(shop: Shop) -> None:
    done = shop.ask("status", "ship")
    assert done.returncode == 2
    assert "running: shop" in done.stderr


def test_the_run_serves_its_own_page(shop: Shop) -> None:
    """The list has its address, and the run has printed it."""
    page = shop.json("list")["page"]
    assert f"page: {page}" in shop.said
    assert page in shop.ask("list").stdout
    with urlopen(page) as answer:  # noqa: S310 - our own server
        assert "order-10" in answer.read().decode()


def test_an_unfinished_message_is_debugged(shop: Shop) -> None:
    """The driver knows the payload and where the topology's file is; it is not disturbed."""
    done = shop.ask("debug", "order-10", "--running", "shop", answers="p tup['item']\nq\n")
    assert done.returncode == 0, done.stderr
    assert "'unknown'" in done.stdout
    assert "shop.py" in done.stderr
    assert "KeyError" in done.stderr
    # Others contain the name: order-100 may be under way just now. The stuck one is the oldest.
    assert shop.json("messages", "shop", "--name", "order-10")["messages"][0]["name"] == "order-10"


def test_resting_it_gives_no_new_messages_until_it_is_woken(shop: Shop) -> None:
    def acked() -> int:
        return int(shop.json("status", "shop")["situation"]["acked"])

    assert shop.ask("deactivate", "shop").returncode == 0
    wait_until(lambda: shop.json("status", "shop")["situation"]["pending"] == 0)
    rested = acked()
    assert shop.json("list")["status"] == "INACTIVE"
    assert shop.ask("activate", "shop").returncode == 0
    wait_until(lambda: acked() > rested)


def test_z_killed_it_ends_in_good_order(shop: Shop) -> None:
    """Last, by its name: the others need it."""
    page = shop.json("list")["page"]
    done = shop.ask("kill", "shop", "--wait", "1")
    assert done.returncode == 0, done.stderr
    assert "has ended" in done.stdout
    shop.process.wait(timeout=120)
    assert "Traceback" not in shop.said
    assert shop.process.returncode == 1, shop.said  # a message was left pending
    assert "no topology runs" in shop.ask("list").stdout
    assert not answers(page)


def test_a_driver_that_was_killed_is_listed_as_dead_with_its_checkpoint(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    try:
        wait_until(lambda: '"page": "http' in shop.ask("list", "--json").stdout, secs=180)
        page = shop.json("list")["page"]
        os.killpg(shop.process.pid, signal.SIGKILL)
        shop.process.wait()
        wait_until(lambda: not answers(page))
        assert shop.json("list")["status"] == "DEAD"
        assert str(tmp_path / "checkpoint") in shop.ask("status", "shop").stderr
    finally:
        shop.process.kill()
        shop.process.wait()
