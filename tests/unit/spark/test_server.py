"""Spark's questions for batches, answered by the coordinator on threads of its own."""

import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

import sparkstorm as ss
from sparkstorm.batches.assembly import make_coordinator
from sparkstorm.batches.coordinator import Coordinator
from sparkstorm.checkpoint.engine_log import EngineLog
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.clock import SystemClock
from sparkstorm.errors import BatchError, ComponentError
from sparkstorm.planning.passes import make_plan
from sparkstorm.spark.driver.source.server import PlanServer
from sparkstorm.testing import PATIENCE_SECS, LogSpout


class Planned(ss.PartitionedSpout):
    """Has nothing to read; says when it is asked, and waits until it may answer."""

    outputs = "n long"
    asked, may_answer = threading.Event(), threading.Event()

    def plan(self, limit: int) -> list[ss.Split]:
        self.asked.set()
        self.may_answer.wait(PATIENCE_SECS)
        return []

    def read(self, split: ss.Split) -> list[tuple[int]]:
        return []


class Broken(Planned):
    """Raises when it is asked for splits."""

    def plan(self, limit: int) -> list[ss.Split]:
        raise RuntimeError("the log has a hole")


@pytest.fixture(autouse=True)
def _new_events() -> Iterator[None]:
    Planned.asked.clear()
    Planned.may_answer.clear()
    yield
    Planned.may_answer.set()


def coordinator_of(spout: ss.PartitionedSpout) -> Coordinator:
    builder = ss.TopologyBuilder()
    builder.set_spout("spout", spout)
    plan = make_plan(builder.create_topology(), name="asked", partitions=2)
    coordinator = make_coordinator(plan, MemoryFiles(), SystemClock(), run="x")
    coordinator.open(EngineLog())
    return coordinator


def answer_of(question: Callable[[], object]) -> "Future[object]":
    """Ask on another thread, as Spark does."""
    answer: Future[object] = Future()

    def ask() -> None:
        try:
            answer.set_result(question())
        except ss.SparkstormError as error:
            answer.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()
    return answer


def test_a_batch_and_its_loads_are_told() -> None:
    """The number after the batch; then what each partition reads."""
    server = PlanServer(coordinator_of(LogSpout([[1], [2], [3]], "n long")))
    assert server.latest(0) == 1
    assert server.was_asked_for_more
    loads = {dest: pickle.loads(data) for dest, data in server.partitions(0)}
    assert sum(load.count for mine in loads.values() for load in mine) == 3
    server.stop()


def test_a_question_that_waits_for_messages_ends_with_the_run() -> None:
    """It has no batch then; at its own end it would have planned the empty first one."""
    Planned.may_answer.set()
    server = PlanServer(coordinator_of(Planned()))
    answer = answer_of(lambda: server.latest(0))
    assert Planned.asked.wait(PATIENCE_SECS)
    server.stop()
    assert answer.result(PATIENCE_SECS) == 0


def test_a_spout_that_hangs_holds_up_no_stop() -> None:
    """The question is answered while the spout still plans; so is a later one."""
    server = PlanServer(coordinator_of(Planned()))
    answer = answer_of(lambda: server.latest(0))
    assert Planned.asked.wait(PATIENCE_SECS)
    server.stop()
    server.stop()
    assert answer.result(PATIENCE_SECS) == 0
    with pytest.raises(BatchError, match="is being stopped"):
        answer_of(lambda: server.partitions(0)).result(PATIENCE_SECS)
    assert not Planned.may_answer.is_set()
    assert server.fault is None


def test_the_type_of_an_error_is_kept() -> None:
    """Spark carries nothing but its text to the supervisor."""
    server = PlanServer(coordinator_of(Broken()))
    with pytest.raises(ComponentError, match="the log has a hole"):
        server.latest(0)
    assert isinstance(server.fault, ComponentError)
