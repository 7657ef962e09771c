"""The bolt of a task: its copy, its collector, its context, its state and its attributes."""

import os
import traceback
from typing import Any, final

import cloudpickle

from sparkstorm.components.bolt import AnyBolt, Bolt
from sparkstorm.components.context import TaskContext
from sparkstorm.components.stateful import StatefulBolt
from sparkstorm.errors import ComponentError
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.inbox import Inbox
from sparkstorm.planning.plan import Plan
from sparkstorm.processes.client import KeeperClient
from sparkstorm.state.attributes import AttributeGuard, AttributeKeeper
from sparkstorm.state.image import state_of
from sparkstorm.tasks.collectors.emission import BasicEmission, BoltEmission
from sparkstorm.tasks.collectors.outbox import Outbox, make_outboxes
from sparkstorm.tasks.receivers import Receivers
from sparkstorm.tasks.report import Report
from sparkstorm.texts.user_errors import USER_ERRORS, message_of
from sparkstorm.topology.wiring import wiring_of

__all__ = ["BoltInstance"]


@final
class BoltInstance:
    """A task's own copy of its bolt, with all that the bolt works with.

    Attributes:
        bolt: the copy; prepared before its first batch.
        boxes: the outboxes of the bolt's streams, empty between batches.
        emission: the collector, which fills the outboxes.
        context: the context that the bolt sees.
        state: the state of a stateful bolt.
    """

    def __init__(self, plan: Plan, component: str, task: int, owner: int | None = None) -> None:
        spec = plan.spec(component)
        # Tasks in one process must not share attributes, which they would not share on two
        # machines.
        bolt: AnyBolt = cloudpickle.loads(cloudpickle.dumps(spec.component))
        self._component = component
        self.bolt = bolt
        self.boxes: dict[str, Outbox] = make_outboxes(plan, component)
        collector = BoltEmission if isinstance(bolt, Bolt) else BasicEmission
        self.emission = collector(component, self.boxes, Report(component, task))
        self._receivers = Receivers(plan, task)
        self.emission.receivers_of_last = self._receivers.of_last
        self._owner = os.getpid() if owner is None else owner
        self.context = TaskContext(
            topology=plan.name,
            component=component,
            task=task,
            tasks=plan.tasks,
            config=plan.settings(component),
            sources=[(edge.source, edge.stream) for edge in spec.subscriptions],
            wiring=wiring_of(plan.topology.components, component),
        )
        self.state = state_of(plan, component) if spec.is_stateful else None
        self._attributes: AttributeGuard | AttributeKeeper | None = None

    def begin(self, inbox: Inbox, report: Report, batch: BatchInfo, partition: int) -> None:
        """Start a batch."""
        self.context.batch, self.context.batch_time = batch.number, batch.time
        self.context.set_processes(KeeperClient(batch.run, self._owner))
        self._receivers.begin(batch, partition)
        self.emission.begin(inbox, report)

    def prepare(self) -> None:
        """Prepare the bolt before its first batch, and bring its attributes in line with the state.

        Raises:
            ComponentError: the bolt's ``prepare`` or ``init_state`` raised.
        """
        if self._attributes is None:
            self._attributes = self._prepared()
        if isinstance(self._attributes, AttributeKeeper):
            self._attributes.bring()

    def check_attributes(self) -> None:
        """Keep the attributes of a stateful bolt after a batch; compare those of any other.

        Raises:
            AttributeStateError: the bolt changed an attribute that is not kept, or cannot be.
        """
        if isinstance(self._attributes, AttributeKeeper):
            self._attributes.keep()
        elif self._attributes is not None:
            self._attributes.check()

    def end(self) -> None:
        """End a batch: keep nothing of the batch alive."""
        for box in self.boxes.values():
            box.clear()
        self.emission.end()

    def _prepared(self) -> AttributeGuard | AttributeKeeper:
        bolt: Any = self.bolt
        bolt.context = self.context
        try:
            if isinstance(bolt, Bolt) and isinstance(self.emission, BoltEmission):
                bolt.collector = self.emission
                bolt.prepare(self.context.config, self.context, self.emission)
            else:
                bolt.prepare(self.context.config, self.context)
            if isinstance(bolt, StatefulBolt) and self.state is not None:
                bolt.init_state(self.state)
            if bolt.stateful and self.state is not None:
                return AttributeKeeper(self._component, bolt, self.state.attributes)
            return AttributeGuard(self._component, bolt)
        except USER_ERRORS as error:  # no batch can run without the bolt
            raise self._cannot_prepare(error) from error

    def _cannot_prepare(self, error: BaseException) -> ComponentError:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return ComponentError(
            f"bolt {self._component!r} could not be prepared: {message_of(error)} "
            f"({where.filename}, line {where.lineno})"
        )
