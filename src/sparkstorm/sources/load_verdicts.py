"""Verdicts sorted to the loads that their roots began in."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64

__all__ = ["LoadVerdicts", "verdicts_by_load"]


class LoadVerdicts(NamedTuple):
    """What ended of the load whose first root is ``first``."""

    first: int
    acked: U64
    failed: FailedRoots


def verdicts_by_load(
    loads: Mapping[int, int], acked: U64, failed: FailedRoots
) -> Iterator[LoadVerdicts]:
    """Yield the verdicts of each load, by first root, of which any root ended.

    All loads are looked up in one search, so loads that wait for long cost next to nothing.

    Args:
        loads: by their first roots, how many roots each has.
        acked: ascending.
        failed: roots that failed.
    """
    firsts = np.array(sorted(loads), np.uint64)
    counts = np.array([loads[first] for first in firsts.tolist()], np.uint64)
    bounds = np.stack((firsts, firsts + counts))
    acked_from, acked_to = np.searchsorted(acked, bounds)
    failed_from, failed_to = np.searchsorted(failed.roots, bounds)
    ended = (acked_to > acked_from) | (failed_to > failed_from)
    edges = np.stack((acked_from, acked_to, failed_from, failed_to), axis=1)[ended].tolist()
    for first, (start, stop, failed_start, failed_stop) in zip(
        firsts[ended].tolist(), edges, strict=True
    ):
        yield LoadVerdicts(first, acked[start:stop], failed.slice(failed_start, failed_stop))
