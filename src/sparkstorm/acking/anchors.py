"""Anchors: which inputs of a task the tuples that it emits were caused by.

A tuple's *parent* is the number of one input, NO_PARENT, or below that the number of a list of
inputs, kept once for all tuples that are anchored to it.

A long list is one input more, its *stand-in*: never acked, with the share 0 of the list's roots,
or of the grove of them if they are many. To be anchored to it means the same as to be anchored to
all: :mod:`shares` looks at an anchor's roots alone, and what is not acked and has no share
contributes nothing itself. Of a new grove nothing was acked, so the ids of its tuples go to the
ackers, and so do the shares of the inputs that were acked: no tuple of a grove carries anything but
its own id.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias, final

import numpy as np

from sparkstorm.acking.groves import Groves
from sparkstorm.acking.ids import GROVE, U64
from sparkstorm.acking.lineage import Indexes, Lineage, is_ascending

__all__ = ["MANY_ROOTS", "NO_PARENT", "Anchors", "Parent", "parent_of_list"]

Parent: TypeAlias = int

NO_PARENT = -1

MANY_ROOTS = 32
"""Roots that a tuple names one by one at most: so many pairs cost about as much as a grove does."""


def parent_of_list(number: int) -> Parent:
    """Return the parent of what is anchored to the list of this number; and the other way round."""
    return NO_PARENT - 1 - number


@final
@dataclass(frozen=True, slots=True)
class Anchors:
    """The inputs of a task, stand-ins included, and the lists that name them.

    Attributes:
        inputs: the lineage of the inputs; the stand-ins come last.
        flat: the inputs of each list, one list after the other.
        offsets: where in ``flat`` each list begins, and the last one ends.
    """

    inputs: Lineage
    flat: Indexes
    offsets: Indexes

    @classmethod
    def resolve(
        cls,
        inputs: Lineage,
        lists: Sequence[Sequence[int]],
        groves: Groves,
        many: int,
    ) -> "Anchors":
        """Find the lists that are long, and plant a grove for each that has so many roots."""
        offsets = _offsets([len(one) for one in lists])
        flat = np.fromiter(chain.from_iterable(lists), np.int64, int(offsets[-1]))
        pairs = _offsets(inputs.counts()[flat]) if lists else offsets
        is_long = np.diff(pairs[offsets]) >= many
        if not is_long.any():
            return cls(inputs, flat, offsets)
        named = [
            _named(inputs, flat[offsets[number] : offsets[number + 1]], groves, many)
            for number in np.flatnonzero(is_long).tolist()
        ]
        counts = np.where(is_long, 1, np.diff(offsets))
        short = np.empty(int(counts.sum()), np.int64)
        replaced = np.repeat(is_long, counts)
        short[replaced] = len(inputs) + np.arange(len(named))
        short[~replaced] = flat[np.repeat(~is_long, np.diff(offsets))]
        return cls(Lineage.concat([inputs, _stand_ins(named)]), short, _offsets(counts))

    def of(self, parents: Indexes) -> tuple[Indexes, Indexes]:
        """For tuples with these parents, return one (position, input) per input, ascending."""
        if parents.min(initial=0) >= 0:  # the usual case
            return np.arange(len(parents)), parents
        ones = np.broadcast_to(np.int64(1), len(self.inputs))
        counts = _by_parent(parents, ones, np.diff(self.offsets))
        positions = np.repeat(np.arange(len(parents)), counts)
        found = parents[positions]
        listed = np.flatnonzero(found < NO_PARENT)
        within = np.arange(len(found)) - np.repeat(np.cumsum(counts) - counts, counts)
        first = self.offsets[:-1][_list_numbers(found[listed])]
        found[listed] = self.flat[first + within[listed]]
        return positions, found

    def pairs(self, parents: Indexes) -> Indexes | None:
        """How many pairs tuples with these parents have at most; None if each has one at most."""
        if self.inputs.is_simple and parents.min(initial=0) >= NO_PARENT:
            return None
        counts = self.inputs.counts()
        return _by_parent(parents, counts, np.diff(_offsets(counts[self.flat])[self.offsets]))


def _named(inputs: Lineage, listed: Indexes, groves: Groves, many: int) -> U64:
    """Return the roots of these inputs, or the grove of them if they are many."""
    roots = inputs.roots[inputs.pairs_of(listed)[1]]
    if not is_ascending(roots):
        roots = np.unique(roots)
    if len(roots) < many:
        return roots
    return np.array([groves.plant(groves.roots_of(roots))], np.uint64)


def _stand_ins(named: Sequence[U64]) -> Lineage:
    roots = np.concatenate(named)
    lineage = Lineage(roots, np.zeros_like(roots), _offsets([len(one) for one in named]))
    # A root stands further up, too: without offsets the two would be settled apart.
    return lineage.simplified() if roots.min() >= GROVE else lineage


def _by_parent(parents: Indexes, of_input: Indexes, of_list: Indexes) -> Indexes:
    """Return for each parent what is said of its input or of its list; 0 if there is none."""
    found = np.zeros(len(parents), np.int64)
    single, listed = parents >= 0, parents < NO_PARENT
    found[single] = of_input[parents[single]]
    found[listed] = of_list[_list_numbers(parents[listed])]
    return found


def _list_numbers(parents: Indexes) -> Indexes:
    return NO_PARENT - 1 - parents


def _offsets(counts: Sequence[int] | Indexes) -> Indexes:
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets
