"""The Spark jobs of a micro-batch: the batch itself, and probes on a copy of its plan.

When a job fails, Spark keeps the outputs of finished stages, and the next action on the same frame
uses the outputs. For the batch itself that is welcome: the excluded messages only grow in number,
and each stage leaves them out of its input. A probe must leave no output behind, and its state must
not count. So a probe runs on a copy of the physical plan: new exchanges, and new state whose ids
Spark never hears of.

A repeat of the whole batch must not find earlier outputs either. With ``exactly-once`` a batch is
repeated after a failure in it. With any guarantee a batch is repeated if Spark ran a stage with
state twice and the runs differ (:mod:`sparkstorm.tasks.state_runs`). Then
:meth:`BatchJobs.roll_back` makes Spark forget the outputs, and the ids of the written states.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, final

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from sparkstorm.batches.drive import JobError
from sparkstorm.errors import BatchError, EnvironmentFault
from sparkstorm.packets.batch_info import BatchInfo, Purpose
from sparkstorm.planning.plan import Plan, StageKind
from sparkstorm.spark.driver.failures.causes import (
    cause_of,
    is_fault_of_state_store,
    lack_of_worker,
)
from sparkstorm.spark.driver.failures.start_failures import start_failure
from sparkstorm.spark.internals import cleaner_of, is_stopped, physical_plan
from sparkstorm.spark.rows import BATCH_PROPERTY
from sparkstorm.tasks.state_runs import Place

__all__ = ["BatchJobs"]


@final
class BatchJobs:
    """Runs actions of a micro-batch, on the thread on which Spark calls ``foreachBatch``."""

    def __init__(self, frame: DataFrame, query: StreamingQuery) -> None:
        self._frame = frame
        self._query = query
        self._context = frame.sparkSession.sparkContext

    def run(self, info: BatchInfo, limit_secs: float) -> list[bytes]:
        """Run an action; return the rows of the last stage, or none for a probe.

        Raises:
            JobError: the job failed, or ran over the limit.
            BatchError: Spark could not load or write the state, or start Python workers. No message
                is to blame.
            EnvironmentFault: workers lack something that the topology needs.
        """
        self._context.setLocalProperty(BATCH_PROPERTY, info.to_json())
        limit = _TimeLimit(limit_secs, self._cancel)
        try:
            with limit:
                if info.purpose is Purpose.BATCH:
                    column: list[Any] = self._frame.toArrow().column("packet").to_pylist()
                    return column
                self._probe()
                return []
        except (Py4JJavaError, CapturedException) as error:
            if is_stopped(self._context):  # no job can run: the supervisor sees to that
                raise
            if limit.expired:  # before any other cause: a cancelled job fails in many ways
                raise JobError(f"it took longer than {limit_secs:.1f} s", hung=True) from error
            if (failure := start_failure(error)) is not None:
                raise BatchError(failure.value) from error
            if (lack := lack_of_worker(error)) is not None:
                raise EnvironmentFault(lack) from error
            if is_fault_of_state_store(error):
                raise BatchError(f"Spark cannot keep the state: {cause_of(error)}") from error
            raise JobError(cause_of(error)) from error

    def roll_back(self) -> None:
        """Make Spark forget all that actions have written so far: outputs of stages, and state.

        The next action runs every stage again, on the state of the last committed batch.
        """
        plan = self._plan()
        cleaner = cleaner_of(self._context).get()  # check_conf refuses a session without a cleaner
        for shuffle in _shuffles_of(plan.execute()):
            cleaner.doCleanupShuffle(shuffle, True)
        # Of two states of a partition Spark commits the first: forgetting outputs is not enough.
        for operator in _stateful_operators(plan):
            operator.checkpointInfoAccumulator().reset()

    def states(self, plan: Plan) -> Mapping[Place, int]:
        """Return how many states Spark has of each partition; Spark would commit any of them.

        Normally there is a single state each, and a single call to the JVM per stage shows it.
        """
        stages = [n for n, stage in enumerate(plan.stages) if stage.kind is StageKind.STATE]
        found: dict[Place, int] = {}
        for stage, operator in zip(stages, _stateful_operators(self._plan()), strict=True):
            infos = operator.checkpointInfoAccumulator().value()
            owners: list[int] = list(range(plan.partitions))
            # Asking each info costs a call to the JVM; as many infos as partitions are one each.
            if infos.size() != plan.partitions:
                owners = [infos.get(index).partitionId() for index in range(infos.size())]
            counted = Counter(owners)
            found.update({(stage, owner): counted[owner] for owner in range(plan.partitions)})
        return found

    def _probe(self) -> None:
        # count() of the copy's RDD runs every stage, and brings no rows into Python.
        self._plan().clone().execute().count()

    def _plan(self) -> Any:
        """Return the physical plan of the running micro-batch."""
        return physical_plan(self._query)

    def _cancel(self) -> None:
        self._context.cancelJobGroup(str(self._query.runId))


@final
class _TimeLimit:
    """Calls ``cancel`` when the time is over, and again every second.

    Repeated, because the job may not have begun at the first call.
    """

    _AGAIN_SECS = 1.0

    def __init__(self, secs: float, cancel: Any) -> None:
        self.expired = False
        self._deadline = time.monotonic() + secs
        self._cancel = cancel
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()  # a late cancel would end the next job

    def _watch(self) -> None:
        wait = self._deadline - time.monotonic()
        while not self._over.wait(max(0.0, wait)):
            self.expired = True
            self._cancel()
            wait = self._AGAIN_SECS


def _shuffles_of(rdd: Any) -> set[int]:
    """Return the ids of all shuffles that an RDD depends on."""
    found: set[int] = set()
    seen: set[int] = set()
    waiting = [rdd]
    while waiting:
        one = waiting.pop()
        if one.id() in seen:
            continue
        seen.add(one.id())
        dependencies = one.dependencies()
        for index in range(dependencies.size()):
            dependency = dependencies.apply(index)
            if dependency.getClass().getSimpleName() == "ShuffleDependency":
                found.add(dependency.shuffleId())
            waiting.append(dependency.rdd())
    return found


def _stateful_operators(plan: Any) -> list[Any]:
    """Return a physical plan's operators that keep state, in the order of the plan's stages."""
    found = [operator for operator in _operators_of(plan) if _keeps_state(operator)]
    return found[::-1]  # the root of a physical plan is its last stage


def _operators_of(plan: Any) -> Iterator[Any]:
    """Yield an operator of a physical plan, and all operators below."""
    yield plan
    children = plan.children()
    for index in range(children.size()):
        yield from _operators_of(children.apply(index))


def _keeps_state(operator: Any) -> bool:
    return "TransformWithState" in operator.getClass().getSimpleName()
