"""The life of one task: prepare once, then a batch at a time; the edge that catches user errors."""

import json
import os
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any, final

import cloudpickle

from sparkstorm.acking.anchors import NO_PARENT, Parent
from sparkstorm.acking.groves import Groves
from sparkstorm.components.bolt import AnyBolt, BasicBolt, Bolt
from sparkstorm.components.context import TaskContext
from sparkstorm.components.stateful import StatefulBolt
from sparkstorm.errors import AttributeStateError, ComponentError, EmitError
from sparkstorm.metrics import TaskMetrics
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.inbox import ACKED, FAILED, Inbox
from sparkstorm.packets.packet import Kind, Packet
from sparkstorm.planning.plan import Plan
from sparkstorm.planning.wiring import wiring_of
from sparkstorm.processes.client import KeeperClient
from sparkstorm.state.attributes import AttributeGuard, AttributeKeeper
from sparkstorm.state.log import StateImage, state_of
from sparkstorm.state.undo import Call
from sparkstorm.tasks.collectors.emission import BasicEmission, BoltEmission
from sparkstorm.tasks.collectors.loops import run_basic, run_bolt
from sparkstorm.tasks.collectors.outbox import Outbox, make_outboxes
from sparkstorm.tasks.concurrency import is_async, run_concurrently
from sparkstorm.tasks.dispatch import Delivery, Dispatcher, MisfitError
from sparkstorm.tasks.receivers import Receivers
from sparkstorm.tasks.report import Report, capture_prints
from sparkstorm.texts.user_errors import (
    USER_ERRORS,
    Tracebacks,
    is_of_call,
    is_of_value,
    message_of,
)
from sparkstorm.verdicts import Failure, Reason

__all__ = ["BoltTask"]


@final
class BoltTask:
    """One task of a bolt in one process; kept between batches.

    Args:
        plan: the topology's plan.
        component: the bolt's id.
        task: the task's number.
        owner: the process for whose life the task's kept processes run; this one if None.
    """

    def __init__(self, plan: Plan, component: str, task: int, owner: int | None = None) -> None:
        spec = plan.spec(component)
        bolt = cloudpickle.loads(cloudpickle.dumps(spec.component))
        self._plan = plan
        self._component = component
        self._task = task
        self._concurrency = spec.concurrency
        self._boxes: dict[str, Outbox] = make_outboxes(plan, component)
        self._report = Report(component, task)
        self._tracebacks = Tracebacks()
        self._bolt: AnyBolt = bolt
        self._emission = (BoltEmission if isinstance(bolt, Bolt) else BasicEmission)(
            component, self._boxes, self._report
        )
        self._receivers = Receivers(plan, task)
        self._emission.receivers_of_last = self._receivers.of_last
        self._context = TaskContext(
            topology=plan.name,
            component=component,
            task=task,
            tasks=plan.tasks,
            config=plan.settings(component),
            sources=[(edge.source, edge.stream) for edge in spec.subscriptions],
            wiring=wiring_of(plan, component),
        )
        self._owner = os.getpid() if owner is None else owner
        self._state = state_of(plan, component) if spec.is_stateful else None
        self._attributes: AttributeGuard | AttributeKeeper | None = None

    @property
    def state(self) -> StateImage | None:
        """The state of a stateful bolt, to be loaded before and written after a batch."""
        return self._state

    def run(
        self,
        packets: Sequence[Packet],
        batch: BatchInfo,
        partition: int,
        ended: Iterable[int] = (),
        groves: Groves | None = None,
    ) -> tuple[list[Delivery], Report]:
        """Execute a batch's tuples and return the packets for others, and the report.

        Args:
            packets: DATA packets for this task.
            batch: the batch.
            partition: where it runs.
            ended: roots that ended without tuples that this task may hold.
            groves: those that the packets' tuples belong to.
        """
        started = time.perf_counter()
        self._report = self._emission._report = Report(self._component, self._task)  # noqa: SLF001
        inbox = Inbox(packets, self._task, batch, groves)
        self._tracebacks = Tracebacks()
        self._context.batch, self._context.batch_time = batch.number, batch.time
        self._receivers.begin(batch, partition)
        self._context.set_processes(KeeperClient(batch.run, self._owner))
        self._emission.begin(inbox)
        if self._state is not None:
            self._state.begin(inbox, ended)
        dispatcher = Dispatcher(self._plan, self._task, partition, batch)
        with capture_prints(self._report):
            try:
                self._prepare_once()
            except USER_ERRORS as error:  # nothing can run without it
                return self._fatal(dispatcher, self._cannot_prepare(error)), self._report
            if isinstance(self._attributes, AttributeKeeper):
                self._attributes.bring()
            self._execute_all(inbox)
            self._fail_unread(inbox)
            self._finish(inbox)
        self._tell_untracked(inbox)
        deliveries = self._send(dispatcher, inbox)
        if self._state is not None:
            self._state.finish()
        deliveries += self._check_attributes(dispatcher)
        self._report.metrics = self._metrics(inbox, time.perf_counter() - started)
        self._report.finish()
        for box in self._boxes.values():
            box.clear()
        self._emission.begin(Inbox.empty())
        return deliveries, self._report

    def cleanup(self) -> None:
        """Tell the bolt that the process ends."""
        self._bolt.cleanup()

    def _prepare_once(self) -> None:
        if self._attributes is not None:
            return
        bolt: Any = self._bolt
        bolt.context = self._context
        if isinstance(bolt, Bolt) and isinstance(self._emission, BoltEmission):
            bolt.collector = self._emission
            bolt.prepare(self._context.config, self._context, self._emission)
        else:
            bolt.prepare(self._context.config, self._context)
        if isinstance(bolt, StatefulBolt) and self._state is not None:
            bolt.init_state(self._state)
        if bolt.stateful and self._state is not None:
            self._attributes = AttributeKeeper(self._component, bolt, self._state.attributes)
        else:
            self._attributes = AttributeGuard(self._component, bolt)

    def _execute_all(self, inbox: Inbox) -> None:
        bolt = self._bolt
        if self._concurrency > 1 or is_async(bolt):
            run_concurrently(bolt, inbox.tuples(self._plan), self._concurrency, self._one_by_one)
            if isinstance(self._emission, BasicEmission):
                self._emission.skip(sorted(inbox.unread))
        elif isinstance(bolt, BasicBolt) and isinstance(self._emission, BasicEmission):
            run_basic(bolt, self._emission, inbox, self._plan, self._call_failed)
        elif isinstance(bolt, Bolt) and isinstance(self._emission, BoltEmission):
            call = self._state.call if self._state is not None else Call()
            run_bolt(bolt, self._emission, inbox, self._plan, call, self._call_failed)

    def _one_by_one(self, index: int, replay: Callable[[Any], None]) -> None:
        """Take over what a concurrent ``execute`` recorded, in the order of the input."""
        emission, inbox = self._emission, self._emission._inbox  # noqa: SLF001
        basic = emission if isinstance(emission, BasicEmission) else None
        if basic is not None:
            basic.current = index
        try:
            replay(emission)
        except BaseException as error:  # what execute raised, or a value as the collector saw it
            if not is_of_value(error):
                raise
            self._call_failed(index, error)
        else:
            if basic is not None:
                inbox.status[index] = ACKED
        if basic is not None:
            basic.end_input()

    def _call_failed(self, index: int, error: BaseException) -> None:
        """Fail the tuple whose call raised, and take back what the call did, as far as we can."""
        inbox, failure = self._emission._inbox, self._failure(error)  # noqa: SLF001
        if isinstance(self._emission, BasicEmission):
            self._emission.drop_current()
        else:
            self._undo_call(inbox, failure)
        inbox.fail(index, failure)

    def _fail_unread(self, inbox: Inbox) -> None:
        for index, why in sorted(inbox.unread.items()):
            inbox.fail(index, self._failure(EmitError(f"{self._component!r} cannot read {why}")))

    def _finish(self, inbox: Inbox) -> None:
        if not isinstance(self._bolt, Bolt):
            return
        try:
            self._bolt.finish_batch()
        except BaseException as error:  # what it still held fails
            if not is_of_call(error):
                raise
            failure = self._failure(error)
            self._undo_call(inbox, failure)
            self._fail_unheld(inbox, inbox.open_ones(), failure)
            self._report.log("error", f"finish_batch: {failure.message}")

    def _undo_call(self, inbox: Inbox, failure: Failure) -> None:
        """Take back a call's state and acks.

        What it acked fails, since what that did is gone; what was held before it, is held again.
        """
        if self._state is not None:
            self._state.call.undo()
            self._fail_unheld(inbox, inbox.unack_others(), failure)

    def _fail_unheld(self, inbox: Inbox, indexes: Iterable[int], failure: Failure) -> None:
        for index in indexes:
            if self._state is None or not self._state.holds(index):
                inbox.fail(index, failure)

    def _tell_untracked(self, inbox: Inbox) -> None:
        """Show a failure of an untracked tuple, a tick say: no message's verdict tells of it."""
        for index, failure in inbox.failures.items():
            if not inbox.pairs_of(index)[0]:
                self._report.log("error", f"an untracked tuple failed: {failure.message}")
                return

    def _send(self, dispatcher: Dispatcher, inbox: Inbox) -> list[Delivery]:
        while True:
            try:
                lineage = inbox.with_adopted()
                sent = dispatcher.dispatch(
                    lineage,
                    inbox.marks(ACKED),
                    self._boxes.values(),
                    inbox.anchor_lists,
                    inbox.groves,
                )
                break
            except MisfitError as misfit:
                self._drop_misfits(inbox, misfit)
        if lineage.is_tracked:
            sent += dispatcher.hold(Kind.HOLD, inbox.open_roots())
            sent += dispatcher.fail(inbox.failed())
            if inbox.resets:
                sent += dispatcher.hold(Kind.RESET, inbox.reset_roots())
        return sent

    def _drop_misfits(self, inbox: Inbox, misfit: MisfitError) -> None:
        """Fail the tuples that emitted what cannot be sent; a basic bolt's other emits go too."""
        box = self._boxes[misfit.box.key.stream]
        spelled = box.spell_parents()
        parents: dict[Parent, str] = {}
        for row, why in misfit.faults.items():
            parents.setdefault(spelled[row], why)
        inputs: dict[int, str] = {}
        for parent, why in parents.items():
            for one in inbox.anchors_of(parent):
                inputs.setdefault(one, why)
        failures = {
            why: self._failure(EmitError(f"{self._component!r}: {why}")) for why in parents.values()
        }
        for one in sorted(inputs):
            inbox.fail(one, failures[inputs[one]])
        if NO_PARENT in parents:
            self._report.log("error", f"an unanchored tuple was dropped: {misfit}")
        box.drop_rows(misfit.rows)
        if isinstance(self._bolt, BasicBolt):
            for other in self._boxes.values():
                spelled = other.spell_parents()
                other.drop_rows([row for row, p in enumerate(spelled) if p in parents])

    def _check_attributes(self, dispatcher: Dispatcher) -> list[Delivery]:
        try:
            if isinstance(self._attributes, AttributeKeeper):
                self._attributes.keep()
            elif self._attributes is not None:
                self._attributes.check()
        except AttributeStateError as error:
            return self._fatal(dispatcher, error)
        return []

    def _cannot_prepare(self, error: BaseException) -> ComponentError:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return ComponentError(
            f"bolt {self._component!r} could not be prepared: {message_of(error)} "
            f"({where.filename}, line {where.lineno})"
        )

    def _fatal(self, dispatcher: Dispatcher, error: ComponentError) -> list[Delivery]:
        payload = {"kind": type(error).__name__, "message": str(error)}
        return dispatcher.fatal(json.dumps(payload).encode())

    def _failure(self, error: BaseException) -> Failure:
        return Failure(
            reason=Reason.ERROR,
            component=self._component,
            task=self._task,
            message=message_of(error),
            traceback=self._tracebacks.text(error),
        )

    def _metrics(self, inbox: Inbox, seconds: float) -> TaskMetrics:
        return TaskMetrics(
            executed=inbox.received,
            emitted=sum(len(box) for box in self._boxes.values()),
            acked=inbox.status.count(ACKED),
            failed=inbox.status.count(FAILED),
            process_secs=seconds,
            user=self._context.take_counters(),
        )
