"""Anchors: the inputs of a task to which the emitted tuples are anchored.

A tuple's *parent* is a number: an input's number, NO_PARENT, or below NO_PARENT the number of a
list of inputs. A list is kept once for all tuples that are anchored to it.

A long list becomes one more input, the list's *stand-in*. No task acks a stand-in. A stand-in has
the share 0 of the list's roots, or of the roots' grove if the roots are many. An anchor on the
stand-in has the same effect as anchors on all inputs of the list: :mod:`shares` looks at an
anchor's roots alone, and an input without ack and share contributes nothing. No tuple of a new
grove was acked before, so the ids of its tuples go to the ackers, and so do the shares of acked
inputs: a grove's tuple carries nothing but its own id.
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
"""A tuple names fewer roots than these one by one; so many pairs cost about as much as a grove."""


def parent_of_list(number: int) -> Parent:
    """Return the parent number for a list's number, and a list's number for its parent number."""
    return NO_PARENT - 1 - number


@final
@dataclass(frozen=True, slots=True)
class Anchors:
    """The inputs of a task, stand-ins included, and the lists of inputs.

    Attributes:
        inputs: the lineage of the inputs; the stand-ins come last.
        flat: the inputs of all lists, list by list.
        offsets: the start of each list in ``flat``, and the end of the last list.
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
        """Give each long list a stand-in, with a grove if the list has ``many`` roots."""
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
        """For tuples with these parents, return a (position, input) row per input, ascending."""
        if parents.min(initial=0) >= 0:  # usually no tuple has two anchors, or none
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
        """Return the most pairs that each tuple can have; None if no tuple has more than one."""
        if self.inputs.is_simple and parents.min(initial=0) >= NO_PARENT:
            return None
        counts = self.inputs.counts()
        return _by_parent(parents, counts, np.diff(_offsets(counts[self.flat])[self.offsets]))


def _named(inputs: Lineage, listed: Indexes, groves: Groves, many: int) -> U64:
    """Return the roots of the inputs, or the grove of the roots if they are many."""
    roots = inputs.roots[inputs.pairs_of(listed)[1]]
    if not is_ascending(roots):
        roots = np.unique(roots)
    if len(roots) < many:
        return roots
    return np.array([groves.plant(groves.roots_of(roots))], np.uint64)


def _stand_ins(named: Sequence[U64]) -> Lineage:
    roots = np.concatenate(named)
    lineage = Lineage(roots, np.zeros_like(roots), _offsets([len(one) for one in named]))
    # An input names the same root too: without offsets the rule for ascending, single roots
    # would settle the two apart.
    return lineage.simplified() if roots.min() >= GROVE else lineage


def _by_parent(parents: Indexes, of_input: Indexes, of_list: Indexes) -> Indexes:
    """Return each parent's value, by its input or its list; 0 for NO_PARENT."""
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
