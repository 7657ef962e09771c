"""The ledger as a state machine: each root ends once, at the right moment, for the right reason."""

from dataclasses import dataclass
from random import Random

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
)

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import make_root, seeds
from sparkstorm.acking.ledger import Ledger, Verdicts
from sparkstorm.acking.shares import Entries
from sparkstorm.acking.tally import RootRange, Tally
from sparkstorm.verdicts import Failure, Reason

TIMEOUT_S = 20.0
SLACK_S = TIMEOUT_S * 1e-9

FAILED = Failure(reason=Reason.FAILED)
DROPPED = Failure(reason=Reason.LOST, message="the batch brought nothing")


@dataclass
class Open:
    """What the model knows of a root that stayed open: its ack val, and when its time began."""

    val: int
    since: float


@dataclass
class Batch:
    """A planned batch."""

    ranges: list[RootRange]

    @property
    def roots(self) -> list[int]:
        """Its roots."""
        return [root for span in self.ranges for root in range(span.first, span.first + span.count)]


class LedgerMachine(RuleBasedStateMachine):
    """Begins, settles, drops and expires in any order, beside a model of plain dicts."""

    batches = Bundle("batches")

    @initialize(ackers=st.integers(1, 5), on_progress=st.booleans(), random=st.integers(0, 1 << 32))
    def start(self, ackers: int, on_progress: bool, random: int) -> None:
        """Make the ledger."""
        self.now = 1000.0
        self.ackers = ackers
        self.on_progress = on_progress
        self.random = Random(random)
        self.ledger = Ledger(TIMEOUT_S, self.now, on_progress=on_progress)
        self.planned = 0
        self.open: dict[int, Open] = {}
        self.ended: set[int] = set()
        self.sequence = 0

    @rule(target=batches, counts=st.lists(st.integers(0, 5), max_size=3))
    def begin(self, counts: list[int]) -> Batch:
        """Plan a batch."""
        ranges = []
        for count in counts:
            ranges.append(RootRange(make_root(1, self.sequence), count))
            self.sequence += max(count, 1)
        self.ledger.begin(ranges)
        batch = Batch(ranges)
        self.planned += len(batch.roots)
        return batch

    @rule(batch=consumes(batches))
    def settle(self, batch: Batch) -> None:
        """Commit a batch: each of its roots completes, fails, stays open or is lost by chance."""
        tallies = [Tally(batch.ranges, acker, self.ackers) for acker in range(self.ackers)]
        expected = self._judge_late(tallies) | self._judge_new(batch, tallies)
        resets = self._some_open()
        for acker, tally in enumerate(tallies):
            tally.reset_timeout(
                np.array([r for r in resets if r % self.ackers == acker], np.uint64)
            )
        results = [tally.result() for tally in tallies]
        self.random.shuffle(results)
        ended = self._note(self.ledger.settle(batch.ranges, results, self.now))
        assert ended == expected
        self.planned -= len(batch.roots)
        for root in resets:
            if root in self.open:
                self.open[root].since = self.now

    @rule(batch=consumes(batches))
    def drop(self, batch: Batch) -> None:
        """A batch brings nothing: all its roots fail, once."""
        ended = self._note(self.ledger.drop(batch.ranges, DROPPED))
        assert ended == dict.fromkeys(batch.roots, Reason.LOST)
        assert self._note(self.ledger.drop(batch.ranges, DROPPED)) == {}
        self.planned -= len(batch.roots)

    @rule()
    def reset(self) -> None:
        """The time-out of some roots starts anew; roots that are not open are no matter."""
        roots = self._some_open()
        self.ledger.reset_timeout(np.array([*roots, *list(self.ended)[:3]], np.uint64), self.now)
        for root in roots:
            self.open[root].since = self.now

    @rule(seconds=st.floats(0, 3 * TIMEOUT_S) | st.sampled_from([0.0, 2.0, 25.6 * TIMEOUT_S]))
    def wait(self, seconds: float) -> None:
        """Time goes by."""
        self.now += seconds

    @rule()
    def expire(self) -> None:
        """What is open for longer than the time-out, by a tenth at most, fails; nothing younger."""
        ended = self._note(self.ledger.expire(self.now))
        for root, reason in ended.items():
            assert reason is Reason.TIMEOUT
            assert self.now - self.open.pop(root).since >= TIMEOUT_S - SLACK_S
        for left in self.open.values():
            assert self.now - left.since <= 1.1 * TIMEOUT_S + SLACK_S

    @invariant()
    def counts_are_right(self) -> None:
        """The ledger holds what is open and nothing else, in little memory."""
        assert self.ledger.open_roots().tolist() == sorted(self.open)
        assert self.ledger.open == len(self.open)
        some = sorted({*self.open, *list(self.ended)[:9]})
        is_open = self.ledger.is_open(np.array(some, np.uint64)).tolist()
        assert is_open == [root in self.open for root in some]
        assert self.ledger.pending == self.planned + len(self.open)
        assert self.ledger.nbytes <= 20 * len(self.open)

    def _judge_new(self, batch: Batch, tallies: list[Tally]) -> dict[int, Reason | None]:
        ended: dict[int, Reason | None] = {}
        for root in batch.roots:
            tally = tallies[root % self.ackers]
            seed = int(seeds(np.array([root], np.uint64))[0])
            match self.random.choice(("acked", "failed", "lost", "open", "open")):
                case "acked":
                    tally.add(entry(root, seed))
                    ended[root] = None
                case "failed":
                    tally.add(entry(root, seed))  # a failure beats any ack val
                    tally.fail(FailedRoots.of({root: FAILED}))
                    ended[root] = Reason.FAILED
                case "lost":
                    ended[root] = Reason.LOST
                case _:
                    tally.hold(np.array([root], np.uint64))
                    self.open[root] = Open(seed, self.now)
        return ended

    def _judge_late(self, tallies: list[Tally]) -> dict[int, Reason | None]:
        """Contributions to roots of earlier batches, and to some that have ended."""
        ended: dict[int, Reason | None] = {}
        for root in self._some_open():
            tally, known = tallies[root % self.ackers], self.open[root]
            match self.random.choice(("last", "further", "failed")):
                case "last":
                    tally.add(entry(root, known.val ^ 7))
                    tally.add(entry(root, 7))
                    ended[root] = None
                case "further":
                    delta = self.random.getrandbits(64) & ~known.val | 1 << 63 & ~known.val
                    tally.add(entry(root, delta))
                    known.val ^= delta
                    known.since = self.now if self.on_progress else known.since
                case _:
                    tally.fail(FailedRoots.of({root: FAILED}))
                    ended[root] = Reason.FAILED
            if root in ended:
                del self.open[root]
        for root in list(self.ended)[:3]:
            tallies[root % self.ackers].add(entry(root, 1))
            tallies[root % self.ackers].fail(FailedRoots.of({root: FAILED}))
        return ended

    def _some_open(self) -> list[int]:
        return self.random.sample(sorted(self.open), self.random.randint(0, len(self.open)))

    def _note(self, verdicts: Verdicts) -> dict[int, Reason | None]:
        acked = verdicts.acked.tolist()
        assert acked == sorted(acked)
        failed = {root: failure.reason for root, failure in verdicts.failed.items()}
        ended: dict[int, Reason | None] = {**dict.fromkeys(acked), **failed}
        assert len(ended) == len(acked) + len(failed)
        assert not set(ended) & self.ended, "a root ended twice"
        self.ended |= set(ended)
        return ended


def entry(root: int, delta: int) -> Entries:
    """A single contribution."""
    return Entries(np.array([root], np.uint64), np.array([delta], np.uint64))


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=settings().max_examples // 2, stateful_step_count=30)
