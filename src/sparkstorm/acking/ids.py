"""64-bit ids, all derived: the same batch and the same emissions give the same ids."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "GROVE",
    "SEQUENCE_BITS",
    "U64",
    "child_ids",
    "digest",
    "grove_digests",
    "in_groves",
    "make_root",
    "mix64",
    "mix64_of",
    "seeds",
    "sequence_of",
    "task_of",
]

U64: TypeAlias = NDArray[np.uint64]
"""An array of ids, unsigned everywhere."""

SEQUENCE_BITS = 47
"""The low bits of a root: a message's number in its spout task. The high bits hold the task."""

GROVE = 1 << 63
"""Ids of groves (:mod:`groves`) begin here; every root is smaller."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SEED_SALT = np.uint64(0xD1B54A32D192ED03)
_GROVE_SALT = np.uint64(0x8BB84B93962EACC9)
_ONE = np.uint64(1)
_ALL = (1 << 64) - 1


def mix64(values: U64) -> U64:
    """Scatter numbers over 64 bits, one to one: the finaliser of splitmix64.

    Source: Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (OOPSLA 2014).
    """
    mixed = values ^ (values >> np.uint64(30))
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def mix64_of(value: int) -> int:
    """Scatter a single number as :func:`mix64` does, at a tenth of an array's price.

    >>> mix64_of(7) == int(mix64(np.array([7], np.uint64))[0])
    True
    """
    mixed = value ^ value >> 30
    mixed = mixed * 0xBF58476D1CE4E5B9 & _ALL
    mixed ^= mixed >> 27
    mixed = mixed * 0x94D049BB133111EB & _ALL
    return mixed ^ mixed >> 31


def seeds(roots: U64) -> U64:
    """Return the seed of each root, never 0."""
    return _never_zero(mix64(roots + _SEED_SALT))


def child_ids(token: int, count: int) -> U64:
    """Return the ids of the ``count`` tuples that a task emits in a batch, in their order.

    Two runs of a task that do the same get the same ids. Two runs that differ anywhere have no id
    in common, so a tree put together from both can never look complete.

    Args:
        token: a digest of all emitted tuples (contents, roots, destinations) and of the task's
            acks.
        count: the number of tuples.
    """
    return _never_zero(mix64(_steps(count) + np.uint64(token)))


def digest(values: U64, marks: NDArray[np.bool_]) -> int:
    """Return a single number for the marked values and their positions."""
    return int(np.bitwise_xor.reduce(mix64(values + _steps(len(values)))[marks]))


def in_groves(ids: U64, groves: U64) -> U64:
    """Return the shares of groves for children with these ids.

    A child's share differs from grove to grove, and from the child's id. A child may belong to a
    root by several groves, and the contributions must not cancel out.
    """
    return _never_zero(mix64(ids + groves))


def grove_digests(roots: U64, starts: NDArray[np.int64]) -> U64:
    """Return a digest for each set of roots; sets stand end to end and begin at ``starts``.

    The digests of a set's pieces XOR to the digest of the set.
    """
    return np.bitwise_xor.reduceat(mix64(roots + _GROVE_SALT), starts)


def make_root(task: int, sequence: int) -> int:
    """Return the root of a spout task's message: dense numbers, so that ledgers are arrays.

    >>> task_of(make_root(5, 7)), sequence_of(make_root(5, 7))
    (5, 7)
    """
    return task << SEQUENCE_BITS | sequence


def task_of(root: int) -> int:
    """Return the spout task of a root."""
    return root >> SEQUENCE_BITS


def sequence_of(root: int) -> int:
    """Return a root's number among the roots of its spout task."""
    return root & ((1 << SEQUENCE_BITS) - 1)


def _steps(count: int) -> U64:
    return np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN


def _never_zero(ids: U64) -> U64:
    # A tuple with the id 0 could be lost without a trace: XOR with 0 changes nothing.
    return np.where(ids == 0, _ONE, ids)
