"""What a worker process keeps of the topologies that it works for."""

import pickle
import sys
from types import ModuleType
from typing import Any

import cloudpickle
import pytest

import sparkstorm as ss
from sparkstorm.planning.passes import make_plan
from sparkstorm.spark.worker.runtime import PlanPayload, Workers
from sparkstorm.tasks.task import BoltTask
from sparkstorm.testing import FeederSpout, ManualClock

CLEANED: list[str] = []


class Note(ss.Bolt):
    """Says when it is told to clean up."""

    def cleanup(self) -> None:
        CLEANED.append(self.context.topology)

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.ack(tup)


def payload_of(name: str, *classes: type) -> PlanPayload:
    builder = ss.TopologyBuilder()
    builder.set_spout("feed", FeederSpout("n long"))
    builder.set_bolt("note", Note()).shuffle_grouping("feed")
    plan = make_plan(builder.create_topology(), name=name)
    return PlanPayload(name, cloudpickle.dumps((plan.for_workers(), classes)))


def start_bolt(workers: Workers, payload: PlanPayload) -> None:
    """Let the process have a bolt of the topology."""
    worker = workers.of(payload)
    number = worker.plan.tasks["note"].start
    task = worker._tasks[number] = BoltTask(worker.plan, "note", number)
    bolt: Any = task._instance.bolt
    bolt.context = task._instance.context


def test_topologies_that_run_at_a_time_keep_their_bolts() -> None:
    """Workers of one session get tasks of all its runs; none begins anew because of another."""
    CLEANED.clear()
    clock = ManualClock()
    workers, payloads = Workers(clock), [payload_of("one"), payload_of("two")]
    first = [workers.of(payload) for payload in payloads]
    for _ in range(100):
        clock.advance(1)
        assert [workers.of(payload) for payload in payloads] == first
    assert list(workers) == first


def test_a_topology_that_has_not_run_for_a_minute_goes() -> None:
    """Nobody tells a worker that a run has ended; its bolts are told to clean up, once."""
    CLEANED.clear()
    clock = ManualClock()
    workers, one, two = Workers(clock), payload_of("one"), payload_of("two")
    start_bolt(workers, one)
    start_bolt(workers, two)
    clock.advance(40)
    workers.of(two)
    assert CLEANED == []
    clock.advance(40)
    workers.of(two)
    assert CLEANED == ["one"]
    assert len(list(workers)) == 1
    workers.close()
    assert CLEANED == ["one", "two"]


def test_each_topology_finds_its_own_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of them may name different classes alike: whose task runs, his are found."""
    monkeypatch.setitem(sys.modules, "shop", ModuleType("shop"))
    orders = [type("Order", (), {"__module__": "shop", "of": of}) for of in ("one", "two")]
    workers = Workers(ManualClock())
    payloads = [payload_of(order.of, order) for order in orders]  # type: ignore[attr-defined]
    for of in ("one", "two", "one", "one", "two"):
        workers.of(payloads[of == "two"])
        found = pickle.loads(b"cshop\nOrder\n.")
        assert found.of == of


def test_a_module_that_is_missing_on_the_host_is_named() -> None:
    """The driver had it, as is usual on a cluster: the topology was pickled there."""
    acme = ModuleType("acme")
    sys.modules["acme"] = acme
    price = type("Price", (), {"__module__": "acme"})
    acme.Price = price  # type: ignore[attr-defined]
    payload = PlanPayload("shop", cloudpickle.dumps((price, [])))
    del sys.modules["acme"]
    with pytest.raises(ss.EnvironmentFault, match=r"No module named 'acme'\. Install .*--py-files"):
        Workers(ManualClock()).of(payload)
