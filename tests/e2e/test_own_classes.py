"""Values of classes that the topology's own file defines: emitted, kept in state, shown by taps."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparkstorm.testing import PATIENCE_SECS

pytestmark = pytest.mark.e2e

SELLING = """
import sys
from dataclasses import dataclass
from enum import Enum

import sparkstorm as ss

class Fruit(Enum):
    APPLE = "apple"
    PEAR = "pear"

@dataclass(frozen=True)
class Order:
    fruit: Fruit
    count: int

class Check(ss.BasicBolt):
    outputs = ["name", "order"]

    def execute(self, tup, collector):
        order = tup["order"]
        assert isinstance(order, Order) and isinstance(order.fruit, Fruit)
        collector.emit([order.fruit.value, Order(order.fruit, order.count + 1)])

class Sum(ss.StatefulBolt):
    outputs = ["total"]

    def execute(self, tup):
        order = tup["order"]
        last = self.state.get(order.fruit, Order(order.fruit, 0))
        assert isinstance(last, Order)
        total = Order(order.fruit, last.count + order.count)
        self.state.put(order.fruit, total)
        self.collector.emit([total], anchors=tup)
        self.collector.ack(tup)

def topology(args):
    orders = [(Order(fruit, 10),) for fruit in Fruit for _ in range(int(args[0]))]
    builder = ss.TopologyBuilder()
    builder.set_spout("orders", ss.spouts.IteratorSpout(orders, ["order"]))
    builder.set_bolt("check", Check(), parallelism=2).shuffle_grouping("orders")
    builder.set_bolt("sum", Sum(), parallelism=2).fields_grouping("check", ["name"])
    return builder.create_topology()

if __name__ == "__main__":
    totals = []
    with ss.submit(
        topology(sys.argv[1:]),
        name="selling",
        checkpoint=sys.argv[2],
        taps=["sum"],
        on_tap=lambda key, task, rows: totals.extend(rows),
    ) as run:
        run.wait_until_drained()
        assert run.statistics().given_up == 0, run.statistics()
    print(*sorted({f"{total.fruit.value} {total.count}" for (total,) in totals}), sep=",")
"""


@pytest.fixture
def selling(tmp_path: Path) -> Path:
    path = tmp_path / "selling.py"
    path.write_text(SELLING)
    return path


@pytest.mark.slow
def test_of_a_script(selling: Path, tmp_path: Path) -> None:
    """Also after a restart, when another process reads the state."""
    command = [sys.executable, str(selling), "3", str(tmp_path / "checkpoint")]
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    said = []
    for _ in range(2):
        done = subprocess.run(
            command, capture_output=True, text=True, env=env, timeout=PATIENCE_SECS
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.strip())
    assert said[0] == "apple 11,apple 22,apple 33,pear 11,pear 22,pear 33"
    assert said[1] == "apple 44,apple 55,apple 66,pear 44,pear 55,pear 66"


def test_of_a_file_that_is_run(selling: Path) -> None:
    """`sparkstorm run` loads a file under a name that workers cannot import."""
    options = ["--available-now", "--tap", "sum", "--", "2"]
    command = [sys.executable, "-m", "sparkstorm", "run", str(selling), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECS)
    assert done.returncode == 0, done.stderr
    shown = [json.loads(line)["values"]["total"] for line in done.stdout.splitlines()]
    assert len(shown) == 4
    assert "Order(fruit=<Fruit.APPLE: 'apple'>, count=22)" in shown
