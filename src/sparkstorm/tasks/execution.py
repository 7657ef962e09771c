"""The execution of a batch by one task: calls of user code, and the failures that they cause."""

from collections.abc import Iterable
from typing import final

from sparkstorm.components.bolt import BasicBolt, Bolt
from sparkstorm.errors import EmitError
from sparkstorm.packets.inbox import ACKED, Inbox
from sparkstorm.planning.plan import Plan
from sparkstorm.state.spaces.undo import Call
from sparkstorm.tasks.collectors.emission import BasicEmission, BoltEmission
from sparkstorm.tasks.collectors.loops import run_basic, run_bolt
from sparkstorm.tasks.collectors.stopwatch import Stopwatch
from sparkstorm.tasks.concurrency import Recording, is_async, run_concurrently, running
from sparkstorm.tasks.instance import BoltInstance
from sparkstorm.tasks.measuring import Timings
from sparkstorm.tasks.report import Report
from sparkstorm.texts.user_errors import (
    Tracebacks,
    is_mistake,
    is_of_call,
    is_of_value,
    message_of,
    refuse_result,
)
from sparkstorm.verdicts import Failure, Reason

__all__ = ["Execution"]


@final
class Execution:
    """Runs a bolt on the tuples of an inbox, once.

    Args:
        plan: the topology's plan.
        instance: the bolt, prepared, with its collector and its state.
        inbox: the batch's tuples.
        report: takes errors that no verdict tells.
    """

    def __init__(self, plan: Plan, instance: BoltInstance, inbox: Inbox, report: Report) -> None:
        self._plan = plan
        self._bolt = instance.bolt
        self._emission = instance.emission
        self._state = instance.state
        self._inbox = inbox
        self._report = report
        self._concurrency = plan.spec(report.component).concurrency
        self._at_once = self._concurrency > 1 or is_async(self._bolt)
        self._tracebacks = Tracebacks()
        self._secs: dict[int, float] = {}
        self._emission.watch = Stopwatch(is_on=plan.config.stats_latencies)

    def run(self) -> None:
        """Execute all tuples, then ``finish_batch``."""
        self._report.running = self._message
        self._execute_all()
        self._report.running = None
        self._fail_unread()
        self._finish()

    def _execute_all(self) -> None:
        bolt = self._bolt
        if self._at_once:
            run_concurrently(
                bolt, self._inbox.tuples(self._plan), self._concurrency, self._one_by_one
            )
            if isinstance(self._emission, BasicEmission):
                self._emission.skip(sorted(self._inbox.unread))
        elif isinstance(bolt, BasicBolt) and isinstance(self._emission, BasicEmission):
            run_basic(bolt, self._emission, self._inbox, self._plan, self._call_failed)
        elif isinstance(bolt, Bolt) and isinstance(self._emission, BoltEmission):
            # Without a state the loop needs a call all the same: one test less per tuple.
            call = self._state.call if self._state is not None else Call()
            run_bolt(bolt, self._emission, self._inbox, self._plan, call, self._call_failed)

    def _message(self) -> tuple[int, int] | None:
        """Return the root and the attempt of the message whose tuple is being executed."""
        index = running() if self._at_once else self._emission.position()
        if index is None or not 0 <= index < len(self._inbox):
            return None
        roots = self._inbox.roots_of(index)
        return (int(roots[0]), self._inbox.attempt(index)) if len(roots) else None

    def _one_by_one(self, index: int, recording: Recording) -> None:
        """Make the calls that a concurrent ``execute`` recorded; inputs come in order."""
        self._secs[index] = recording.secs
        emission = self._emission
        basic = emission if isinstance(emission, BasicEmission) else None
        if basic is not None:
            basic.current = index
        try:
            recording.replay(emission)
        except BaseException as error:  # raised by execute, or by a value in the collector
            if not is_of_value(error):
                raise
            self._call_failed(index, error)
        else:
            if basic is not None:
                self._inbox.status[index] = ACKED
        if basic is not None:
            basic.end_input()

    def _call_failed(self, index: int, error: BaseException) -> None:
        """Fail the tuple whose call raised, and undo the call as far as possible."""
        failure = self.failure(error)
        if isinstance(self._emission, BasicEmission):
            self._emission.drop_current()
        else:
            self._undo_call(failure)
        self._inbox.fail(index, failure)

    def _fail_unread(self) -> None:
        for index, why in sorted(self._inbox.unread.items()):
            self._inbox.fail(
                index, self.failure(EmitError(f"{self._report.component!r} cannot read {why}"))
            )

    def _finish(self) -> None:
        if not isinstance(self._bolt, Bolt):
            return
        try:
            # The declared result is None, which a user's method may not know.
            result: object = self._bolt.finish_batch()  # type: ignore[func-returns-value]
            refuse_result(result, "finish_batch")
        except BaseException as error:  # the open tuples fail, which finish_batch would have acked
            if not is_of_call(error):
                raise
            failure = self.failure(error)
            self._undo_call(failure)
            # A bolt that failed to finish would leave its open tuples to the time-out.
            self._fail_unheld(self._inbox.open_ones(), failure)
            self._report.log("error", f"finish_batch: {failure.message}")

    def _undo_call(self, failure: Failure) -> None:
        """Roll back this call's state changes.

        Tuples the call acked fail; tuples held earlier stay held.
        """
        if self._state is not None:
            self._state.call.undo()
            self._fail_unheld(self._inbox.unack_others(), failure)

    def _fail_unheld(self, indexes: Iterable[int], failure: Failure) -> None:
        for index in indexes:
            if self._state is None or not self._state.holds(index):
                self._inbox.fail(index, failure)

    def timings(self) -> Timings:
        """Return how long each tuple took."""
        if self._secs:
            return Timings.of_calls(self._secs)
        return Timings.of_readings(self._emission.watch, self._emission.late_acks)

    def tell_untracked(self) -> None:
        """Log the first failure of an untracked tuple, a tick say, which no verdict tells."""
        for index, failure in self._inbox.failures.items():
            if not self._inbox.pairs_of(index)[0]:
                self._report.log("error", f"an untracked tuple failed: {failure.message}")
                return

    def failure(self, error: BaseException) -> Failure:
        """Return the failure of a tuple from an error of user code."""
        return Failure(
            reason=Reason.ERROR,
            component=self._report.component,
            task=self._report.task,
            message=message_of(error),
            traceback=self._tracebacks.text(error),
            final=is_mistake(error),
        )
