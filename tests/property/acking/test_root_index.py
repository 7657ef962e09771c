"""The numbers of roots in ranges, beside a list of them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.acking.tally import RootIndex, RootRange

gaps = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 7)), max_size=6)


def ranges_of(gaps: list[tuple[int, int]], start: int) -> list[RootRange]:
    """Disjoint ranges: how far each is behind the one before, and how long it is."""
    ranges = []
    for gap, count in gaps:
        ranges.append(RootRange(start + gap, count))
        start += gap + count
    return ranges


@given(gaps=gaps, start=st.sampled_from([0, 3, 2**62 - 40]), ackers=st.integers(1, 12))
def test_ackers_share_the_roots(gaps: list[tuple[int, int]], start: int, ackers: int) -> None:
    """Each root is one acker's, and has a slot there and a place among all."""
    ranges = ranges_of(gaps, start)
    every = [root for span in ranges for root in range(span.first, span.first + span.count)]
    whole = RootIndex(ranges[::-1])
    assert whole.roots().tolist() == every
    for acker in range(ackers):
        index = RootIndex(ranges, acker, ackers)
        mine = [root for root in every if root % ackers == acker]
        assert (len(index), index.roots().tolist()) == (len(mine), mine)
        assert index.places().tolist() == [every.index(root) for root in mine]
        assert index.slots(np.array(mine, np.uint64)).tolist() == list(range(len(mine)))
        assert index.digest == whole.digest


@given(gaps=gaps, roots=st.lists(st.integers(0, 90)))
def test_a_root_of_no_range_has_no_number(gaps: list[tuple[int, int]], roots: list[int]) -> None:
    """Nor has one behind all, or between."""
    ranges = ranges_of(gaps, 3)
    every = [root for span in ranges for root in range(span.first, span.first + span.count)]
    slots = RootIndex(ranges).slots(np.array(roots, np.uint64)).tolist()
    assert slots == [every.index(root) if root in every else -1 for root in roots]


def test_other_ranges_have_another_digest() -> None:
    """Also if they hold as many roots."""
    digests = [RootIndex([RootRange(*span)]).digest for span in [(1, 4), (2, 4), (1, 5), (2, 3)]]
    digests += [RootIndex([RootRange(1, 4), RootRange(9, 0)]).digest]
    assert len(set(digests)) == 5
