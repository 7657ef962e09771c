"""A task of a bolt: prepare once, then a batch at a time."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import final

from sparkstorm.acking.groves import Groves
from sparkstorm.errors import ComponentError
from sparkstorm.metrics import InputMetrics, OutputMetrics, TaskMetrics
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.inbox import ACKED, FAILED, Inbox
from sparkstorm.packets.packet import Packet
from sparkstorm.planning.plan import Plan
from sparkstorm.state.image import StateImage
from sparkstorm.tasks.dispatch import Delivery, Dispatcher
from sparkstorm.tasks.execution import Execution
from sparkstorm.tasks.instance import BoltInstance
from sparkstorm.tasks.measuring import inputs_of
from sparkstorm.tasks.report import Report, capture_prints
from sparkstorm.tasks.sending import Sending
from sparkstorm.tasks.tracing import trace_inputs

__all__ = ["BoltTask"]


@final
class BoltTask:
    """One task of a bolt in one process; lives from batch to batch.

    Args:
        plan: the topology's plan.
        component: the bolt's id.
        task: the task's number.
        owner: the process for whose life the task's kept processes run; this one if None.
    """

    def __init__(self, plan: Plan, component: str, task: int, owner: int | None = None) -> None:
        self._plan = plan
        self._component = component
        self._task = task
        self._instance = BoltInstance(plan, component, task, owner)

    @property
    def state(self) -> StateImage | None:
        """The state of a stateful bolt, to be loaded before and written after a batch."""
        return self._instance.state

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
            partition: the partition of the task.
            ended: ended roots, of which the task may hold tuples.
            groves: the groves of the packets' tuples.
        """
        started = time.perf_counter()
        least = batch.level_of(self._component)
        instance, report = self._instance, Report(self._component, self._task, least=least)
        inbox = Inbox(packets, self._task, batch, groves)
        instance.begin(inbox, report, batch, partition)
        if instance.state is not None:
            instance.state.begin(inbox, ended)
        dispatcher = Dispatcher(self._plan, self._task, partition, batch)
        execution = Execution(self._plan, instance, inbox, report)
        with capture_prints(report):
            try:
                instance.prepare()
            except ComponentError as error:
                return _fatal(dispatcher, error), report
            execution.run()
        execution.tell_untracked()
        deliveries = Sending(instance, inbox, report, execution.failure).run(dispatcher)
        if instance.state is not None:
            instance.state.finish()
        try:
            instance.check_attributes()
        except ComponentError as error:
            deliveries += _fatal(dispatcher, error)
        timings = execution.timings()
        inputs = inputs_of(self._plan, inbox, timings)
        report.traces = [
            *dispatcher.traces,
            *trace_inputs(self._plan, inbox, self._component, timings),
        ]
        report.metrics = self._metrics(inbox, inputs, dispatcher, time.perf_counter() - started)
        report.finish()
        instance.end()
        return deliveries, report

    def cleanup(self) -> None:
        """Tell the bolt that the process ends."""
        self._instance.bolt.cleanup()

    def _metrics(
        self,
        inbox: Inbox,
        inputs: Mapping[tuple[str, str], InputMetrics],
        dispatcher: Dispatcher,
        seconds: float,
    ) -> TaskMetrics:
        outputs, context = dict(dispatcher.outputs), self._instance.context
        for name, box in self._instance.boxes.items():
            if box.unread:
                outputs[name] = OutputMetrics(emitted=box.unread)
        return TaskMetrics(
            executed=inbox.received,
            emitted=sum(one.emitted for one in outputs.values()),
            transferred=sum(one.transferred for one in outputs.values()),
            acked=inbox.status.count(ACKED),
            failed=inbox.status.count(FAILED),
            untracked_failed=inbox.untracked_failed(),
            process_secs=seconds,
            inputs=inputs,
            outputs=outputs,
            failures=Counter(failure.reason.value for failure in inbox.failures.values()),
            user=context.take_counters(),
            observed=context.take_observed(),
        )


def _fatal(dispatcher: Dispatcher, error: ComponentError) -> list[Delivery]:
    """Return the packet that stops the topology."""
    payload = {"kind": type(error).__name__, "message": str(error)}
    return dispatcher.fatal(json.dumps(payload).encode())
