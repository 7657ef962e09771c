"""A task's contributions in one batch: shares for its children, entries for the ackers.

Storm's rule decides the contributions to a root (see :mod:`sparkstorm.acking`):

- emitting a child adds the child's id, once for each root in the union of its anchors' roots;
- acking a tuple adds the tuple's share of each of its roots;
- nothing else adds anything.

A grove (:mod:`groves`) counts as a root here: a contribution to the grove goes to each of its
roots. A child may belong to a root by itself and by several groves. The child's id therefore
differs from grove to grove; equal ids would cancel out.

A task's contribution to a root becomes an ack entry ``(root, delta)``. If the task acked a tuple of
the root and emitted children, the contribution is *folded* into the share of the first child
instead.

Why only after an ack: the acked tuple's share lives on in the child, and losing the child loses the
share too. A tuple that stays held while the task emits keeps its own share. Were the contribution
folded into the child there, child and contribution could be lost together and the tree would look
complete.

Children of a grove that stands for a list of inputs (:mod:`anchors`) are children of each root in
the grove, but their ids are in the grove's group, not in the groups of the roots. If the roots'
acked shares were folded apart from these ids, a lost carrier would take the shares with it
unnoticed. So with such a grove nothing is folded: the task's whole contribution goes to the ackers,
from a single run.

Spark may run a task twice, and a bolt that is not deterministic may behave differently the second
time; some readers then see the first run, some the second. So the children's ids derive from the
emitted tuples (``token``) and from the acks. Two runs that differ in either have no id in common,
and their shares cannot cancel each other.
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
        """Return no entries."""
        empty = np.empty(0, np.uint64)
        return cls(empty, empty)

    def __len__(self) -> int:
        return len(self.roots)


@final
@dataclass(frozen=True, slots=True)
class Settlement:
    """The result for a task: the children's lineage, and the entries for the ackers."""

    children: Lineage
    entries: Entries


@final
@dataclass(frozen=True, slots=True)
class _Groups:
    """Input pairs in groups of one root each, and the child pairs in the same groups."""

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
    """Return the shares of a task's children, and the task's ack entries.

    Args:
        inputs: the lineage of the task's inputs.
        acked: marks the inputs that the task acked in this batch.
        child: with ``anchor``, a row per (child, anchor): the child's number, ascending.
        anchor: the input that anchors the child; a repeated anchor counts once.
        children: the number of emitted tuples, each copy for itself.
        token: a digest of the emitted tuples. The children's ids derive from the token and the
            acks.
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
    # Fold only where the task acked a tuple of the root; the module's docstring says why.
    carried = (carrier >= 0) & has_acked
    # Only the stand-in of a list has a grove with the share 0.
    if np.any((inputs.roots >= GROVE) & (inputs.shares == 0)):
        carried[:] = False
    ids[carrier[carried]] ^= deltas[carried]
    left = ~carried & (deltas != 0)
    return Settlement(_lineage(groups, ids, children), Entries(groups.roots[left], deltas[left]))


def xor_by_group(groups: Indexes, values: U64, count: int) -> U64:
    """XOR the values of each group; ``groups`` gives the group of each value."""
    result = np.zeros(count, np.uint64)
    if not len(values):
        return result
    if is_ascending(groups):
        result[groups] = values  # each value is a group of its own
    elif np.any(groups[1:] < groups[:-1]):
        # Unsorted groups are rare; reduceat, which wants them sorted, is many times faster.
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
    """Group without sorting in the usual case: tuples of a root stand together."""
    if is_ascending(roots):
        return _Groups(roots, np.arange(len(roots)), anchor, child)
    starts = _run_starts(roots)
    of_pair = np.zeros(len(roots), np.int64)
    of_pair[starts[1:]] = 1
    np.cumsum(of_pair, out=of_pair)
    return _Groups(roots[starts], of_pair, of_pair[anchor], child)


def _run_starts(values: NDArray[np.generic]) -> Indexes:
    return np.concatenate(([0], np.flatnonzero(values[1:] != values[:-1]) + 1))


def _first_of_group(groups: Indexes, count: int) -> Indexes:
    """Return the position of each group's first member, -1 for an empty group."""
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
