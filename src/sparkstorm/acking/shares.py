"""What one task contributes in one batch: shares for its children, entries for the ackers.

Contributions to a root (DESIGN of Storm's acker, :mod:`sparkstorm.acking`):

- emitting a child adds the child's id, once for each root in the union of its anchors' roots;
- acking a tuple adds the tuple's share of each of its roots;
- nothing else adds anything.

A grove (:mod:`groves`) is a root here: what is added to it is added to each of its roots. A child
may belong to a root on several ways, by itself and in groves; so its id differs from grove to
grove, lest one way cancels out another.

What a task has to contribute to a root becomes an ack entry ``(root, delta)``, or, if the task
acked a tuple of that root and emitted children, is folded into the share of the first of them.

Why only if it acked one: the share of the acked tuple then lives on in that child, and losing the
child loses it too. A tuple that is held while it emits keeps its own share; were the child's id
folded into the child itself, child and contribution could be lost together and the tree look
complete.

Children of a grove that stands for a list of inputs (:mod:`anchors`) are children of each root in
it, yet their ids are in the grove's group, not in the groups of these roots. Folded apart from the
roots' acked shares they could be lost with a carrier that says nothing of them. So where there is
such a grove nothing is folded: all that the task contributes goes to the ackers, of one run.

Spark may run a task twice, and a bolt that is not deterministic may do otherwise the second time;
some of its readers may then see the one run, some the other. So the ids of the children derive
from everything that settles them: what was emitted (``token``) and what was acked. Two runs that
differ in either have no id in common, and their shares cannot cancel each other.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.ids import GROVE, U64, child_ids, digest, in_groves
from sparkstorm.acking.lineage import Indexes, Lineage, is_ascending

__all__ = ["Entries", "Settlement", "settle", "xor_by_group"]


@final
@dataclass(frozen=True, slots=True)
class Entries:
    """Ack entries: XOR each delta into the ack val of its root."""

    roots: U64
    deltas: U64

    @classmethod
    def none(cls) -> "Entries":
        """No entries."""
        empty = np.empty(0, np.uint64)
        return cls(empty, empty)

    def __len__(self) -> int:
        return len(self.roots)


@final
@dataclass(frozen=True, slots=True)
class Settlement:
    """The result for one task: the children's lineage, and what goes to the ackers."""

    children: Lineage
    entries: Entries


@final
@dataclass(frozen=True, slots=True)
class _Groups:
    """Input pairs put into groups of one root each, and the child pairs in the same groups."""

    roots: U64
    of_pair: Indexes
    of_child: Indexes
    child: Indexes


def settle(
    inputs: Lineage,
    acked: NDArray[np.bool_],
    child: Indexes,
    anchor: Indexes,
    children: int,
    token: int,
) -> Settlement:
    """Work out the shares of a task's children and its ack entries.

    Args:
        inputs: the lineage of the tuples that the task has at hand.
        acked: which of them it acked in this batch.
        child: with ``anchor``, one row per (child, anchor): the child's number, ascending.
        anchor: the input that the child is anchored to; the same one twice counts once.
        children: how many tuples it emitted, each copy for itself.
        token: a digest of what it emitted; with what it acked, the children's ids derive from it.
    """
    if not inputs.is_tracked:
        return Settlement(Lineage.untracked(children), Entries.none())
    groups = _group(inputs, child, anchor)
    acked_pairs = acked if inputs.is_simple else np.repeat(acked, inputs.counts())
    acked_shares = np.where(acked_pairs, inputs.shares, np.uint64(0))
    deltas = xor_by_group(groups.of_pair, acked_shares, len(groups.roots))
    has_acked = _any_of_group(groups.of_pair, acked_pairs, len(groups.roots))
    ids = child_ids(token ^ digest(deltas, has_acked), children)[groups.child]
    if groups.roots.max(initial=0) >= GROVE:
        roots = groups.roots[groups.of_child]
        ids = np.where(roots >= GROVE, in_groves(ids, roots), ids)
    deltas ^= xor_by_group(groups.of_child, ids, len(groups.roots))
    carrier = _first_of_group(groups.of_child, len(groups.roots))
    carried = (carrier >= 0) & has_acked
    if np.any((inputs.roots >= GROVE) & (inputs.shares == 0)):  # a stand-in names a grove
        carried[:] = False
    ids[carrier[carried]] ^= deltas[carried]
    left = ~carried & (deltas != 0)
    return Settlement(_lineage(groups, ids, children), Entries(groups.roots[left], deltas[left]))


def xor_by_group(groups: Indexes, values: U64, count: int) -> U64:
    """XOR the values of each group; ``groups`` says which group each value belongs to."""
    result = np.zeros(count, np.uint64)
    if not len(values):
        return result
    if np.any(groups[1:] < groups[:-1]):
        np.bitwise_xor.at(result, groups, values)
    else:
        starts = _run_starts(groups)
        result[groups[starts]] = np.bitwise_xor.reduceat(values, starts)
    return result


def _group(inputs: Lineage, child: Indexes, anchor: Indexes) -> _Groups:
    if inputs.is_simple and is_ascending(child):
        return _group_runs(inputs.roots, child, anchor)
    roots, of_pair = np.unique(inputs.roots, return_inverse=True)
    position, pair = inputs.pairs_of(anchor)
    keys = np.stack((child[position], of_pair[pair]))
    keys = np.unique(keys, axis=1) if keys.size else keys
    return _Groups(roots, of_pair, keys[1], keys[0])


def _group_runs(roots: U64, child: Indexes, anchor: Indexes) -> _Groups:
    """The usual case without sorting: tuples of one root come one after the other."""
    starts = _run_starts(roots)
    of_pair = np.zeros(len(roots), np.int64)
    of_pair[starts[1:]] = 1
    np.cumsum(of_pair, out=of_pair)
    return _Groups(roots[starts], of_pair, of_pair[anchor], child)


def _run_starts(values: NDArray[np.generic]) -> Indexes:
    return np.concatenate(([0], np.flatnonzero(values[1:] != values[:-1]) + 1))


def _first_of_group(groups: Indexes, count: int) -> Indexes:
    """The position of the first member of each group, -1 if it has none."""
    first = np.full(count, -1, np.int64)
    first[groups[::-1]] = np.arange(len(groups) - 1, -1, -1)
    return first


def _any_of_group(groups: Indexes, marks: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    found = np.zeros(count, np.bool_)
    found[groups[marks]] = True
    return found


def _lineage(groups: _Groups, shares: U64, children: int) -> Lineage:
    roots = groups.roots[groups.of_child]
    if len(groups.child) == children and is_ascending(groups.child):  # so each of them is there
        return Lineage(roots, shares)
    offsets = np.zeros(children + 1, np.int64)
    np.cumsum(np.bincount(groups.child, minlength=children), out=offsets[1:])
    return Lineage(roots, shares, offsets)
