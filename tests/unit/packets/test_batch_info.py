"""What tasks know of their batch."""

import numpy as np
import pytest

from sparkstorm.acking.tally import RootRange
from sparkstorm.packets.batch_info import BatchInfo, Retried

BATCH = BatchInfo(
    number=7,
    run="a1b2",
    ranges=(RootRange(10, 5), RootRange(100, 20)),
    retried=(Retried(12, 2, 3), Retried(100, 1, 2), Retried(101, 4, 17)),
    excluded=(RootRange(11, 1), RootRange(110, 2)),
)


def test_a_batch_survives_the_way_to_the_workers() -> None:
    """As text, with everything in it."""
    assert BatchInfo.from_json(BATCH.to_json()) == BATCH
    assert BatchInfo.from_json(BatchInfo(number=0).to_json()) == BatchInfo(number=0)


@pytest.mark.parametrize(
    ("root", "attempt"),
    [(9, 1), (10, 1), (12, 3), (13, 3), (14, 1), (99, 1), (100, 2), (101, 17), (104, 17), (105, 1)],
)
def test_a_root_knows_its_attempt(root: int, attempt: int) -> None:
    """Roots that are no retry are at their first."""
    assert BATCH.attempt(root) == attempt


def test_excluded_roots_are_marked() -> None:
    """Also where a range of them begins and ends."""
    roots = np.array([10, 11, 12, 109, 110, 111, 112], np.uint64)
    assert BATCH.is_excluded(roots).tolist() == [False, True, False, False, True, True, False]
    assert BatchInfo(number=0).is_excluded(roots).any() == np.False_
