"""The ledger: pending roots between batches. See also its state machine in tests/property."""

from collections.abc import Iterable

import numpy as np
import pytest

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import make_root, seeds
from sparkstorm.acking.ledger import Ledger, Verdicts
from sparkstorm.acking.shares import Entries
from sparkstorm.acking.tally import RootRange, Tally, TallyResult
from sparkstorm.errors import InternalError
from sparkstorm.verdicts import Failure, Reason

TIMEOUT_S = 10.0
FIRST = make_root(3, 100)
RANGE = RootRange(FIRST, 4)
FAILED = Failure(reason=Reason.FAILED, component="split", task=4, message="bad")


def u64(*values: int) -> np.ndarray:
    """Values as ids."""
    return np.array(values, np.uint64)


def seed(root: int) -> int:
    """The seed of one root."""
    return int(seeds(u64(root))[0])


def tallied(
    *ranges: RootRange,
    complete: Iterable[int] = (),
    held: Iterable[int] = (),
    failed: Iterable[int] = (),
    late: Iterable[tuple[int, int]] = (),
    resets: Iterable[int] = (),
    ackers: int = 2,
) -> list[TallyResult]:
    """The results of all ackers for a batch."""
    tallies = [Tally(ranges, acker, ackers) for acker in range(ackers)]
    for root in complete:
        tallies[root % ackers].add(Entries(u64(root), u64(seed(root))))
    for root, delta in late:
        tallies[root % ackers].add(Entries(u64(root), u64(delta)))
    for root in held:
        tallies[root % ackers].hold(u64(root))
    for root in failed:
        tallies[root % ackers].fail(FailedRoots.of({root: FAILED}))
    for root in resets:
        tallies[root % ackers].reset_timeout(u64(root))
    return [tally.result() for tally in tallies]


def reasons(verdicts: Verdicts) -> dict[int, Reason]:
    """The reason of each failed root."""
    return {root: failure.reason for root, failure in verdicts.failed.items()}


@pytest.fixture
def ledger() -> Ledger:
    """A ledger whose roots expire ten seconds after their batch."""
    return Ledger(TIMEOUT_S, 0.0)


@pytest.fixture
def holding(ledger: Ledger) -> Ledger:
    """The same, at second 1, with the four roots of RANGE open."""
    ledger.begin([RANGE])
    ledger.settle([RANGE], tallied(RANGE, held=range(FIRST, FIRST + 4)), 1.0)
    return ledger


def test_an_empty_ledger_holds_nothing(ledger: Ledger) -> None:
    """And settles a batch without roots."""
    assert (ledger.pending, ledger.open, ledger.nbytes) == (0, 0, 0)
    assert ledger.open_roots().tolist() == []
    verdicts = ledger.settle([], tallied(), 1.0)
    assert not verdicts.acked.tolist()
    assert not len(verdicts.failed)


def test_a_planned_root_is_pending_at_no_cost(ledger: Ledger) -> None:
    """While its batch runs, the ledger knows the range alone."""
    ledger.begin([RANGE, RootRange(5, 1_000_000)])
    assert (ledger.pending, ledger.open, ledger.nbytes) == (1_000_004, 0, 0)
    assert repr(ledger) == "Ledger(pending=1000004, open=0)"


def test_each_root_gets_the_verdict_of_its_acker(ledger: Ledger) -> None:
    """Complete, failed, open or, if it is in none of these, lost."""
    ledger.begin([RANGE])
    results = tallied(RANGE, complete=[FIRST], failed=[FIRST + 1], held=[FIRST + 2])
    verdicts = ledger.settle([RANGE], results[::-1], 1.0)
    assert verdicts.acked.tolist() == [FIRST]
    assert reasons(verdicts) == {FIRST + 1: Reason.FAILED, FIRST + 3: Reason.LOST}
    assert verdicts.failed[FIRST + 1] is FAILED
    assert ledger.open_roots().tolist() == [FIRST + 2]
    assert repr(ledger) == "Ledger(pending=1, open=1)"


def test_the_acked_of_several_ranges_come_sorted(ledger: Ledger) -> None:
    """Whatever the order of the ranges, ackers and batches."""
    ranges = [RootRange(make_root(9, 0), 2), RootRange(make_root(2, 0), 3)]
    roots = [root for span in ranges for root in range(span.first, span.first + span.count)]
    ledger.begin(ranges)
    verdicts = ledger.settle(ranges, tallied(*ranges, complete=roots, ackers=3), 1.0)
    assert verdicts.acked.tolist() == sorted(roots)


def test_an_open_root_completes_when_the_rest_comes(holding: Ledger) -> None:
    """Its val goes on over batches, in any number of contributions."""
    assert holding.settle([], tallied(late=[(FIRST, 77)]), 2.0).acked.tolist() == []
    rest = [(FIRST, 77 ^ seed(FIRST) ^ 5), (FIRST, 5)]
    assert holding.settle([], tallied(late=rest), 3.0).acked.tolist() == [FIRST]
    assert holding.open == 3


def test_an_open_root_may_fail_later(holding: Ledger) -> None:
    """Also if its last contribution comes in the same batch."""
    results = tallied(late=[(FIRST, seed(FIRST))], failed=[FIRST])
    verdicts = holding.settle([], results, 2.0)
    assert verdicts.acked.tolist() == []
    assert reasons(verdicts) == {FIRST: Reason.FAILED}


def test_a_root_that_has_ended_is_not_revived(holding: Ledger) -> None:
    """Contributions, failures and resets that come later change nothing."""
    holding.settle([], tallied(failed=[FIRST]), 2.0)
    again = tallied(late=[(FIRST, seed(FIRST))], failed=[FIRST], resets=[FIRST])
    verdicts = holding.settle([], again, 3.0)
    assert not verdicts.acked.tolist()
    assert not len(verdicts.failed)
    assert FIRST not in holding.open_roots().tolist()


def test_a_window_shrinks_with_its_roots(holding: Ledger) -> None:
    """An open root takes 17 bytes, one that has ended none."""
    assert holding.nbytes == 4 * 17
    holding.settle([], tallied(failed=[FIRST + 1]), 2.0)
    assert holding.nbytes == 3 * 17
    holding.settle([], tallied(failed=range(FIRST, FIRST + 4)), 3.0)
    assert (holding.nbytes, repr(holding)) == (0, "Ledger(pending=0, open=0)")


def test_open_roots_expire_after_the_timeout(holding: Ledger) -> None:
    """Not before it, and at the latest a tenth after it."""
    assert holding.expire(10.9).failed == {}
    verdicts = holding.expire(12.1)
    assert reasons(verdicts) == dict.fromkeys(range(FIRST, FIRST + 4), Reason.TIMEOUT)
    assert "holds a tuple" in verdicts.failed[FIRST].message
    assert verdicts.acked.tolist() == []
    assert holding.open == 0


def test_roots_expire_although_batches_keep_the_time_moving(holding: Ledger) -> None:
    """A topology that is never idle settles and plans at each tick before it asks what expired.

    Asked in the tick that ``settle`` had moved to already, the ledger once said: nothing.
    """
    expired: dict[int, Failure] = {}
    for second in range(2, 14):
        span = RootRange(FIRST + 100 * second, 1)
        holding.begin([span])
        holding.settle([span], tallied(span, complete=[span.first]), float(second))
        expired.update(holding.expire(float(second)).failed)
    assert sorted(expired) == list(range(FIRST, FIRST + 4))


def test_the_time_begins_with_the_end_of_the_batch(ledger: Ledger) -> None:
    """What waits for a later batch must get the chance, however long its own took."""
    ledger.begin([RANGE])
    ledger.settle([RANGE], tallied(RANGE, held=[FIRST]), 25.6 * TIMEOUT_S)
    assert ledger.expire(26.5 * TIMEOUT_S).failed == {}
    assert reasons(ledger.expire(26.8 * TIMEOUT_S)) == {FIRST: Reason.TIMEOUT}


def test_counted_from_progress_the_time_begins_anew_with_each_contribution() -> None:
    """Only for the roots that it is for."""
    ledger = Ledger(TIMEOUT_S, 0.0, on_progress=True)
    ledger.begin([RANGE])
    ledger.settle([RANGE], tallied(RANGE, held=[FIRST, FIRST + 1]), 100.0)
    assert ledger.expire(109.0).failed == {}
    ledger.settle([], tallied(late=[(FIRST, 77)]), 109.0)
    assert reasons(ledger.expire(111.5))[FIRST + 1] is Reason.TIMEOUT
    assert ledger.open_roots().tolist() == [FIRST]


def test_a_reset_starts_the_time_anew(holding: Ledger) -> None:
    """Asked for by a bolt, through the ackers, or by the driver."""
    holding.settle([], tallied(resets=[FIRST]), 8.0)
    holding.reset_timeout(u64(FIRST + 1, 12345), 8.0)
    assert sorted(holding.expire(12.0).failed) == [FIRST + 2, FIRST + 3]
    assert sorted(holding.expire(19.5).failed) == [FIRST, FIRST + 1]


def test_without_a_timeout_nothing_expires() -> None:
    """The roots stay open."""
    ledger = Ledger(None, 0.0)
    ledger.begin([RANGE])
    ledger.settle([RANGE], tallied(RANGE, held=[FIRST]), 1.0)
    assert ledger.expire(1e9).failed == {}
    assert ledger.open == 1


def test_a_dropped_batch_fails_all_its_roots_once(ledger: Ledger) -> None:
    """What was not planned, or dropped before, is no matter."""
    ledger.begin([RANGE])
    verdicts = ledger.drop([RANGE, RootRange(1, 2)], FAILED)
    assert verdicts.failed == dict.fromkeys(range(FIRST, FIRST + 4), FAILED)
    assert ledger.drop([RANGE], FAILED).failed == {}
    assert ledger.pending == 0


def test_an_empty_range_is_none(ledger: Ledger) -> None:
    """It may even start where another one does."""
    ranges = [RootRange(FIRST, 0), RANGE]
    ledger.begin(ranges)
    verdicts = ledger.settle(ranges, tallied(*ranges, complete=[FIRST]), 1.0)
    assert verdicts.acked.tolist() == [FIRST]


@pytest.mark.parametrize(
    ("results", "why"),
    [
        (tallied(RANGE)[:1], "of other roots"),
        (tallied(RANGE)[1:], "ackers are missing"),
        (tallied(RANGE)[:1] * 2, "ackers are missing"),
        ([], "no acker has a result"),
        (tallied(RootRange(FIRST, 3)), "of other roots"),
        (tallied(RANGE, RootRange(5, 0)), "of other roots"),
    ],
)
def test_results_that_do_not_fit_are_refused(
    ledger: Ledger, results: list[TallyResult], why: str
) -> None:
    """A result that is missing must not make roots look complete, or lost; nothing is changed."""
    ledger.begin([RANGE])
    with pytest.raises(InternalError, match=why):
        ledger.settle([RANGE], results, 1.0)
    assert ledger.pending == 4


def test_the_last_acker_of_two_is_missed_with_one_root_each(ledger: Ledger) -> None:
    """The marks of the first one alone once counted for both roots."""
    span = RootRange(make_root(1, 0), 2)
    ledger.begin([span])
    with pytest.raises(InternalError, match="of other roots"):
        ledger.settle([span], tallied(span, complete=[span.first])[:1], 1.0)
    assert ledger.pending == 2


@pytest.mark.parametrize(
    "ranges", [[RANGE, RANGE], [RootRange(FIRST, 3)], [RANGE, RootRange(7, 1)]]
)
def test_ranges_that_were_not_planned_are_refused(holding: Ledger, ranges: list[RootRange]) -> None:
    """Settled twice, cut otherwise or never heard of: nothing is changed, late or new."""
    holding.begin([RANGE])
    with pytest.raises(InternalError, match="settled twice, or never planned"):
        holding.settle(ranges, tallied(*ranges, late=[(FIRST, seed(FIRST))]), 2.0)
    assert (holding.pending, holding.open) == (8, 4)
