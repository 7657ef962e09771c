"""Exactly once: a batch happens as a whole or not at all, and committers apply it in order.

1. ``judge``  the job is done: if a tuple failed, the batch is to be rolled back and run again,
              with the same messages; those that have failed too often are left out then
2. ``decide`` it is whole: its content, and what the committers staged, is made durable
3. ``apply``  the committers apply it, before Spark commits it

A driver that dies after ``decide`` leaves the next one no choice: the same content, the same txid.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, final

import cloudpickle

from sparkstorm.components.committer import CommitterBolt, Transaction
from sparkstorm.delivery.decision import Decision
from sparkstorm.delivery.files import CheckpointFiles
from sparkstorm.delivery.identity import identity_of
from sparkstorm.delivery.journal import Journal
from sparkstorm.delivery.record import BatchRecord
from sparkstorm.delivery.retry import RetryPolicy
from sparkstorm.errors import BatchError, CommitError, ComponentError, SupersededError
from sparkstorm.execution.packet import Packet
from sparkstorm.planning.plan import Plan
from sparkstorm.verdicts import Failure

__all__ = ["Pause", "Transactions"]

Pause = Callable[[float], None]
"""Waits so many seconds; raises if the run is being stopped meanwhile."""

_logger = logging.getLogger(__name__)


@final
class Transactions:
    """The batches of an exactly-once topology, one at a time, and its committers.

    Args:
        plan: the topology's plan.
        journal: where decisions are kept.
        files: the checkpoint.
    """

    def __init__(self, plan: Plan, journal: Journal, files: CheckpointFiles) -> None:
        self.rollbacks = 0
        self._plan = plan
        self._journal = journal
        self._files = files
        self._owner = ""
        self._policy = RetryPolicy.of(plan.config)
        self._committers: dict[str, CommitterBolt] = {
            name: cloudpickle.loads(cloudpickle.dumps(plan.spec(name).component))
            for name in plan.committers
        }

    def open(self) -> None:
        """Connect the committers.

        Raises:
            CommitError: the target of one is out of reach.
        """
        self._owner = identity_of(self._files)
        for name, committer in self._committers.items():
            try:
                committer.connect(self._plan.settings(name))
            except Exception as error:
                raise CommitError(
                    f"committer {name!r} cannot connect: {type(error).__name__}: {error}"
                ) from error

    def close(self) -> None:
        """Disconnect the committers; what goes wrong now is only told."""
        for name, committer in self._committers.items():
            try:
                committer.disconnect()
            except Exception as error:  # noqa: BLE001 - user code, and everything is applied
                _logger.warning("committer %r could not disconnect: %s", name, error)

    def judge(self, record: BatchRecord) -> float | None:
        """Return None if a batch is whole, else the seconds after which to run it again.

        Raises:
            ComponentError: a bolt holds tuples beyond the batch.
            BatchError: it was decided on earlier, and cannot be repeated.
        """
        if record.holders:
            names = sorted({self._plan.component_of(task) for task in record.holders})
            raise ComponentError(
                f"{', '.join(map(repr, names))} held tuples beyond their batch, which with "
                f"processing.guarantee exactly-once must be whole when it ends: ack or fail each "
                f"tuple in its batch (windows and joins need at-least-once)"
            )
        failing = record.failing()
        if not failing:
            return None
        self.rollbacks += 1
        record.failed.update(failing.keys())
        waits = {root: self._wait(record, root, failure) for root, failure in failing.items()}
        beyond = {root: failing[root] for root, wait in waits.items() if wait is None}
        wait = max((wait for wait in waits.values() if wait is not None), default=0.0)
        self._tell(record, failing, beyond, wait)
        record.repeat(without=beyond)
        return wait

    def decide(self, record: BatchRecord) -> None:
        """Make it durable what a whole batch has done."""
        if record.decision is None:
            record.decision = Decision(
                time=record.time,
                excluded=record.left_out,
                given_up=dict(record.given_up),
                staged=self._staged(record.tapped),
            )
        self._journal.write_decision(record.plan.number, record.decision.to_bytes())

    def apply(self, record: BatchRecord, pause: Pause) -> None:
        """Have the committers apply a batch that was decided on.

        Raises:
            CommitError: one could not, as often as the retry policy lets it try.
            SupersededError: another run has taken over the checkpoint.
        """
        assert record.decision is not None  # noqa: S101 - decide goes before
        for name, staged in record.decision.staged.items():
            transaction = Transaction(
                txid=record.plan.number,
                owner=f"{self._plan.name}/{self._owner}/{name}",
                time=record.decision.time,
            )
            if name in self._committers:  # else it was taken out of the topology since
                self._commit(name, transaction, cloudpickle.loads(staged), pause)

    def _wait(self, record: BatchRecord, root: int, failure: Failure) -> float | None:
        """Seconds until the next try, or None if there is to be none."""
        attempt = record.attempts(root)
        if not failure.counted:
            return self._policy.pause(attempt=attempt, key=root)
        return None if failure.final else self._policy.delay(attempt=attempt, key=root)

    def _tell(
        self,
        record: BatchRecord,
        failing: Mapping[int, Failure],
        beyond: Mapping[int, Failure],
        wait: float,
    ) -> None:
        number, some = record.plan.number, next(iter(failing.values()))
        if beyond and record.decision is not None:
            raise BatchError(
                f"batch {number} was decided on as it was, perhaps by an earlier driver, and "
                f"cannot be repeated: {len(beyond)} messages fail now ({some})"
            )
        _logger.warning(
            "batch %s: rolled back, since %s of %s messages failed (%s); run again in %.1f s%s",
            number,
            len(failing),
            record.plan.messages,
            some,
            wait,
            f" without {len(beyond)} that failed too often" if beyond else "",
        )

    def _staged(self, packets: Iterable[Packet]) -> dict[str, bytes]:
        """What each committer's tasks have staged, in the order of the packets."""
        found: dict[str, list[Any]] = {}
        for packet in packets:
            name = self._plan.stream_keys[packet.head.stream].component
            if name in self._committers:
                [column] = packet.columns()
                found.setdefault(name, []).extend(column.to_list())
        return {name: cloudpickle.dumps(values) for name, values in sorted(found.items())}

    def _commit(self, name: str, transaction: Transaction, staged: list[Any], pause: Pause) -> None:
        attempt = 1
        while True:
            self._journal.check()
            try:
                return self._committers[name].commit(transaction, staged)
            except SupersededError:  # a target may notice before the lease does
                raise
            except Exception as error:
                what = f"committer {name!r} could not apply transaction {transaction.txid}"
                why = f"{type(error).__name__}: {error}"
                wait = self._policy.delay(attempt=attempt, key=transaction.txid)
                if wait is None:
                    raise CommitError(
                        f"{what} in {attempt} tries: {why}. Nothing of it is lost: mend that, and "
                        f"start the topology again on the same checkpoint"
                    ) from error
                _logger.warning("%s: %s; tried again in %.1f s", what, why, wait)
            pause(wait)
            attempt += 1
