"""The roots of a load's messages, which begin in this batch."""

import numpy as np

from sparkstorm.acking.anchors import NO_PARENT
from sparkstorm.acking.ids import U64, seeds
from sparkstorm.acking.lineage import Indexes, Lineage
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.load import Load

__all__ = ["EXCLUDED", "roots_of"]

EXCLUDED = -2
"""Marks rows of excluded roots."""


def roots_of(
    load: Load, batch: BatchInfo, positions: Indexes, *, is_tracked: bool
) -> tuple[Lineage, Indexes]:
    """Return the roots that start, and each row's root by its number among them.

    A root without a row held no message: the root starts without a tuple, and so completes at once.
    """
    if load.first is None or not is_tracked:
        count = len(positions)
        return Lineage.untracked(0), np.full(count, NO_PARENT)
    roots = np.arange(load.count, dtype=np.uint64) + np.uint64(load.first)
    excluded = batch.is_excluded(roots)
    number = np.cumsum(~excluded) - 1
    number[excluded] = EXCLUDED
    started: U64 = roots[~excluded]
    return Lineage(started, seeds(started)), number[positions]
