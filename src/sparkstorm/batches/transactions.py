"""Transactions: an exactly-once batch happens as a whole or not at all, and committers apply it.

1. ``judge``  the job has run. If a tuple failed, the batch is rolled back and run again with the
              same messages, but for messages that failed too often
2. ``decide`` the batch is whole: its content, and the staged values of committers, are written down
3. ``apply``  the committers apply the batch, before Spark commits

A driver that dies after ``decide`` leaves the next driver no choice: same content, same txid.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, final

import cloudpickle
import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import SEQUENCE_BITS, task_of
from sparkstorm.acking.lineage import Indexes
from sparkstorm.batches.batch import Batch
from sparkstorm.batches.journal import Journal
from sparkstorm.batches.recovery.decision import Decision
from sparkstorm.checkpoint.files import CheckpointFiles
from sparkstorm.checkpoint.identity import identity_of
from sparkstorm.components.committer import CommitterBolt, Transaction
from sparkstorm.errors import CheckpointError, CommitError, ComponentError, SupersededError
from sparkstorm.packets.packet import Packet
from sparkstorm.planning.plan import Plan
from sparkstorm.sources.retry import RetryPolicy
from sparkstorm.texts.credentials import untold
from sparkstorm.texts.logs import logger_of
from sparkstorm.verdicts import Failure

__all__ = ["Transactions", "Wait"]

Wait = Callable[[float], None]
"""Waits so many seconds; raises if the run is being stopped meanwhile."""

_MAX_WAIT_SECS = 5.0
"""The longest wait before a batch runs again: while one message waits, all others do."""

_logger = logger_of(__name__)


@final
class Transactions:
    """The batches of an exactly-once topology, one at a time, and the topology's committers.

    Args:
        plan: the topology's plan.
        journal: keeps the decisions.
        files: the checkpoint.
    """

    def __init__(self, plan: Plan, journal: Journal, files: CheckpointFiles) -> None:
        self._plan = plan
        self._journal = journal
        self._files = files
        self._owner = ""
        self._policies = {
            spec.id: RetryPolicy.of(plan.settings(spec.id))
            for spec in plan.topology.components.values()
        }
        self._committers: dict[str, CommitterBolt] = {
            name: cloudpickle.loads(cloudpickle.dumps(plan.spec(name).component))
            for name in plan.committers
        }

    def open(self) -> None:
        """Connect the committers.

        Raises:
            CommitError: a target is out of reach.
        """
        self._owner = identity_of(self._files)
        for name, committer in self._committers.items():
            try:
                committer.connect(self._plan.settings(name))
            except Exception as error:  # noqa: BLE001 - user code
                raise CommitError(
                    f"committer {name!r} cannot connect: {type(error).__name__}: {error}"
                ) from untold(error)

    def close(self) -> None:
        """Disconnect the committers; an error is only logged, since everything is applied."""
        for name, committer in self._committers.items():
            try:
                committer.disconnect()
            except Exception as error:  # noqa: BLE001 - user code, and everything is applied
                _logger.warning("committer %r could not disconnect: %s", name, error)

    def judge(self, batch: Batch) -> float | None:
        """Return None if a batch is whole, else the seconds after which to run the batch again.

        Raises:
            ComponentError: a bolt holds tuples beyond the batch.
            CheckpointError: an earlier driver decided on the batch, and the batch cannot be
            repeated.
        """
        failing = batch.failing()
        if not len(failing):
            self._check_held(batch)
            return None
        tried = batch.repeats.note_failing(failing, batch.plan)
        last, wait = self._last_tries(failing, tried)
        beyond = failing.select(last)
        if len(beyond) and batch.decision is not None:
            raise _unrepeatable(batch, beyond)
        self._tell(batch, failing, len(beyond), wait)
        batch.repeat(without=beyond)
        return wait

    def decide(self, batch: Batch) -> None:
        """Write down the content of a whole batch, unless an earlier driver did.

        A committer that was added since then gets the staged values of this run.
        """
        staged = self._staged(batch.answers.tapped)
        decision = batch.decision or Decision(
            time=batch.plan.time,
            excluded=batch.left_out.ranges,
            given_up=batch.repeats.given_up,
            tries=batch.repeats.tries,
        )
        decision = replace(decision, staged={**staged, **decision.staged})
        self._journal.write_decision(batch.plan.number, decision.to_bytes())
        batch.decision = decision

    def apply(self, batch: Batch, pause: Wait) -> None:
        """Have the committers apply a decided batch.

        Raises:
            CommitError: a committer failed as often as its retry policy allows.
            SupersededError: another run has taken over the checkpoint.
        """
        assert batch.decision is not None  # noqa: S101 - decide goes before
        for name, staged in batch.decision.staged.items():
            transaction = Transaction(
                txid=batch.plan.number,
                owner=f"{self._plan.name}/{self._owner}/{name}",
                time=batch.decision.time,
            )
            self._commit(name, transaction, staged, pause)
        self._journal.check()

    def _check_held(self, batch: Batch) -> None:
        if batch.holders:
            names = sorted({self._plan.component_of(task) for task in batch.holders})
            raise ComponentError(
                f"{', '.join(map(repr, names))} held tuples beyond their batch, which with "
                f"processing.guarantee exactly-once must be whole when it ends: ack or fail each "
                f"tuple in its batch (windows and joins need at-least-once)"
            )

    def _last_tries(self, failing: FailedRoots, tried: Indexes) -> tuple[NDArray[np.bool_], float]:
        """Return which of the failing roots are not tried again, and how long the others wait.

        The policy is asked once for all roots of a spout task with equal tries and equal failures.
        """
        causes = [2 * why.final + why.counted for why in failing.causes]
        ways = np.array(causes, np.int64)[failing.which] | tried << 2
        tasks = failing.roots >> np.uint64(SEQUENCE_BITS)
        _, firsts, group = np.unique(
            tasks.astype(np.int64) << 32 | ways, return_index=True, return_inverse=True
        )
        waits = [
            self._wait(root, int(tried[first]), failing[root])
            for first, root in zip(firsts.tolist(), failing.roots[firsts].tolist(), strict=True)
        ]
        last = np.array([wait is None for wait in waits], np.bool_)
        return last[group], max((wait for wait in waits if wait is not None), default=0.0)

    def _wait(self, root: int, tried: int, failure: Failure) -> float | None:
        """Return the seconds until the next try, or None after the last try."""
        policy = self._policies[self._plan.component_of(task_of(root))]
        wait = policy.wait(failure, attempt=tried, key=root)
        return None if wait is None else min(wait, _MAX_WAIT_SECS)

    def _tell(self, batch: Batch, failing: FailedRoots, beyond: int, wait: float) -> None:
        _logger.warning(
            "batch %s: rolled back, since %s of %s messages failed (%s); run again in %.1f s%s",
            batch.plan.number,
            len(failing),
            batch.plan.messages,
            failing.first,
            wait,
            f" without {beyond} that failed too often" if beyond else "",
        )

    def _staged(self, packets: Iterable[Packet]) -> dict[str, bytes]:
        """Return the staged values of each committer's tasks, in the order of the packets."""
        found: dict[str, list[Any]] = {}
        for packet in packets:
            name = self._plan.stream_keys[packet.head.stream].component
            if name in self._committers:
                [column] = packet.columns()
                found.setdefault(name, []).extend(column.to_list())
        return {name: cloudpickle.dumps(values) for name, values in sorted(found.items())}

    def _commit(self, name: str, transaction: Transaction, staged: bytes, pause: Wait) -> None:
        attempt = 1
        while True:
            self._journal.check()
            try:
                return self._committers[name].commit(transaction, cloudpickle.loads(staged))
            except SupersededError:  # a target may notice before the lease does
                raise
            except Exception as error:  # noqa: BLE001 - user code
                what = f"committer {name!r} could not apply transaction {transaction.txid}"
                why = f"{type(error).__name__}: {error}"
                wait = self._policies[name].delay(attempt=attempt, key=transaction.txid)
                if wait is None:
                    raise CommitError(
                        f"{what} in {attempt} tries: {why}. Nothing of it is lost: mend that, and "
                        f"start the topology again on the same checkpoint"
                    ) from untold(error)
                _logger.warning("%s: %s; tried again in %.1f s", what, why, wait)
            pause(wait)
            attempt += 1


def _unrepeatable(batch: Batch, beyond: FailedRoots) -> CheckpointError:
    return CheckpointError(
        f"batch {batch.plan.number} was decided on before Spark committed it, so its committers "
        f"may have applied it; it cannot be repeated as it was, since of its messages "
        f"{len(beyond)} failed now ({beyond.first}). Mend that, and start the "
        f"topology again on the same checkpoint"
    )
