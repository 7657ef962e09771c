"""Failed roots, grouped by cause: a million roots may share one failure, which is told once."""

from collections.abc import Callable, Hashable, ItemsView, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sparkstorm.acking.ids import U64
from sparkstorm.acking.lineage import Indexes
from sparkstorm.verdicts import Failure

__all__ = ["Causes", "FailedRoots"]

_MOST_TEXTS = 1000
"""The most different texts of a task, or an acker, in a batch."""

_MOST_CHARS = 500_000
"""The most characters of all texts together. An acker sends no more to the driver."""

_CAUSE_CHARS = 100
"""The size of a cause beside its text: the same text of many tasks is as many causes."""

_MAX_MESSAGE_CHARS = 2100
"""A longer text is cut. Texts of exceptions were cut before, a little shorter."""

_EXAMPLE_CHARS = 200


@final
class FailedRoots(Mapping[int, Failure]):
    """Ascending roots, each with the number of its failure among ``causes``; a read-only mapping.

    With many roots, work on the arrays or on groups of roots. Some causes may have no root: parts
    share the causes of the whole.
    """

    __slots__ = ("_numbers", "causes", "roots", "which")

    def __init__(
        self,
        roots: U64,
        which: Indexes,
        causes: tuple[Failure, ...],
        numbers: tuple[Indexes, Indexes] | None = None,
    ) -> None:
        self.roots = roots
        self.which = which
        self.causes = causes
        self._numbers = numbers

    @classmethod
    def none(cls) -> "FailedRoots":
        """Return an empty mapping."""
        return cls(np.empty(0, np.uint64), np.empty(0, np.int64), ())

    @classmethod
    def alike(cls, roots: U64, failure: Failure) -> "FailedRoots":
        """Return ascending roots with the same failure."""
        return cls(roots, np.zeros(len(roots), np.int64), (failure,))

    @classmethod
    def of(cls, failures: Mapping[int, Failure]) -> "FailedRoots":
        """Return the failures of a mapping, grouped."""
        if isinstance(failures, FailedRoots):
            return failures
        roots = np.array(list(failures), np.uint64)
        return cls.first_of_each(roots, list(failures.values()))

    @classmethod
    def first_of_each(cls, roots: U64, failures: Iterable[Failure]) -> "FailedRoots":
        """Group failures of roots in any order; the first failure of a root counts."""
        numbers: dict[Failure, int] = {}
        each = [numbers.setdefault(failure, len(numbers)) for failure in failures]
        return cls._first(roots, np.array(each, np.int64), tuple(numbers))

    @classmethod
    def merge(cls, parts: Sequence["FailedRoots"]) -> "FailedRoots":
        """Join parts; for a root in several parts the first part's failure counts."""
        parts = [part for part in parts if len(part.roots)]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.none()
        numbers: dict[Failure, int] = {}
        which = []
        for part in parts:
            same = [numbers.setdefault(cause, len(numbers)) for cause in part.causes]
            which.append(np.array(same, np.int64)[part.which])
        roots = np.concatenate([part.roots for part in parts])
        return cls._first(roots, np.concatenate(which), tuple(numbers))

    @classmethod
    def _first(cls, roots: U64, which: Indexes, causes: tuple[Failure, ...]) -> "FailedRoots":
        each, first = np.unique(roots, return_index=True)
        return cls(each, which[first], causes)

    def __len__(self) -> int:
        return len(self.roots)

    def __iter__(self) -> Iterator[int]:
        roots: list[int] = self.roots.tolist()
        return iter(roots)

    def __getitem__(self, root: int) -> Failure:
        slot = int(np.searchsorted(self.roots, np.uint64(root)))
        if slot == len(self.roots) or int(self.roots[slot]) != root:
            raise KeyError(root)
        return self.causes[int(self.which[slot])]

    def items(self) -> ItemsView[int, Failure]:
        """Return the roots with their failures, ascending."""
        causes = self.causes
        pairs = zip(self.roots.tolist(), self.which.tolist(), strict=True)
        return {root: causes[number] for root, number in pairs}.items()

    def __repr__(self) -> str:
        return f"FailedRoots({len(self.roots)} roots, {len(self.causes)} causes)"

    @property
    def first(self) -> Failure:
        """The failure of the first root; the mapping must not be empty."""
        return self.causes[int(self.which[0])]

    def select(self, chosen: NDArray[Any]) -> "FailedRoots":
        """Return some of the roots, by marks or ascending positions."""
        return FailedRoots(self.roots[chosen], self.which[chosen], self.causes, self._numbers)

    def between(self, first: int, stop: int) -> "FailedRoots":
        """Return the roots from ``first`` up to ``stop``, without copying."""
        start, end = np.searchsorted(self.roots, np.array([first, stop], np.uint64))
        return self.slice(int(start), int(end))

    def slice(self, start: int, stop: int) -> "FailedRoots":
        """Return the roots at the positions from ``start`` up to ``stop``, without copying."""
        return FailedRoots(
            self.roots[start:stop], self.which[start:stop], self.causes, self._numbers
        )

    def without(self, roots: U64) -> "FailedRoots":
        """Return all roots but the given."""
        return self.select(~np.isin(self.roots, roots))

    def changed(self, change: Callable[[Failure], Failure]) -> "FailedRoots":
        """Return the same roots with changed failures; ``change`` runs once per cause."""
        return FailedRoots(self.roots, self.which, tuple(map(change, self.causes)))

    def compact(self) -> "FailedRoots":
        """Return the same failures without unused causes."""
        used, which = np.unique(self.which, return_inverse=True)
        if len(used) == len(self.causes):
            return self
        return FailedRoots(self.roots, which, tuple(self.causes[n] for n in used.tolist()))

    def counts(self) -> list[tuple[Failure, int]]:
        """Return each used cause with its number of roots, in the order of their first roots."""
        counts = np.bincount(self.which, minlength=len(self.causes)).tolist()
        first = np.zeros(len(self.causes), np.int64)
        first[self.which[::-1]] = np.arange(len(self.which))[::-1]
        order = np.argsort(first, kind="stable").tolist()
        return [(self.causes[number], counts[number]) for number in order if counts[number]]

    def by_way(self) -> "list[FailedRoots]":
        """Return the roots in groups with equal reason, component and attempt.

        These decide on the next try.
        """
        ways = self._alike()[0][self.which]
        return [self.select(ways == way) for way in np.unique(ways).tolist()]

    def by_text(self, first: int) -> list[tuple[Failure, list[tuple[int, int]]]]:
        """Return each text with the places of its roots, counted from ``first``, as ranges.

        The texts come in the order of their first roots. Failures that differ only in task and
        traceback have the same text.
        """
        if not len(self.roots):
            return []
        texts = self._alike()[1][self.which]
        order = np.argsort(texts, kind="stable")
        texts, places = texts[order], (self.roots[order] - np.uint64(first)).astype(np.int64)
        is_other = np.diff(texts) != 0
        ends = np.flatnonzero(is_other | (np.diff(places) != 1))
        starts = np.concatenate([[0], ends + 1])
        stops = places[np.concatenate([ends, [-1]])] + 1
        runs = list(zip(places[starts].tolist(), stops.tolist(), strict=True))
        begins = np.flatnonzero(np.concatenate([[True], is_other])[starts]).tolist()
        causes = self.which[order[starts[begins]]].tolist()
        found = [
            (self.causes[cause], runs[begin:end])
            for cause, begin, end in zip(causes, begins, [*begins[1:], len(runs)], strict=True)
        ]
        return sorted(found, key=lambda text: text[1][0])

    def _alike(self) -> tuple[Indexes, Indexes]:
        """Return the numbers of each cause's way and text.

        The result is cached; parts made later share the result.
        """
        if self._numbers is None:
            # Numbers compare many times faster than failures with long texts.
            ways: dict[Hashable, int] = {}
            texts: dict[Hashable, int] = {}
            pairs = []
            for why in self.causes:
                way = why.reason, why.component, why.attempt, why.final, why.counted
                number = ways.setdefault(way, len(ways))
                pairs.append((number, texts.setdefault((number, why.message), len(texts))))
            numbers = np.array(pairs, np.int64).reshape(-1, 2)
            self._numbers = numbers[:, 0], numbers[:, 1]
        return self._numbers

    def share_groups(self) -> None:
        """Prepare :meth:`by_way` and :meth:`by_text` now, for all parts made later."""
        self._alike()


@final
class Causes:
    """The different failures of a task or acker in a batch, few and short enough to travel.

    A million errors that quote their message would be a million texts for the driver. So failures
    beyond the bounds share a stand-in with all others of their kind; the stand-in says so.
    """

    def __init__(self, texts: int = _MOST_TEXTS, chars: int = _MOST_CHARS) -> None:
        self._most = texts
        self._chars_left = chars
        self._kept: dict[Failure, Failure] = {}
        self._texts: set[str] = set()
        self._lines: set[str] = set()
        self._others: dict[Hashable, Failure] = {}
        self._examples: dict[Hashable, str] = {}

    def share(self, failure: Failure) -> Failure:
        """Return the failure to report instead: an equal failure, or the stand-in of its kind."""
        kept = self._kept.get(failure)
        if kept is not None:
            return kept
        short = _shortened(failure)
        if short is not failure:
            return self.share(short)
        is_new = failure.message not in self._texts
        if is_new and len(self._texts) >= self._most:
            return self._other(failure)
        # Tracebacks mostly differ in a line or two, so only new lines count.
        lines = set(failure.traceback.splitlines()) - self._lines
        chars = _CAUSE_CHARS + len(failure.message) * is_new + sum(map(len, lines))
        if chars > self._chars_left:
            return self._other(failure)
        self._chars_left -= chars
        self._lines |= lines
        self._texts.add(failure.message)
        self._kept[failure] = failure
        return failure

    def _other(self, why: Failure) -> Failure:
        kind = why.reason, why.component, why.attempt, why.final, why.counted
        other = self._others.get((kind, why.task))
        if other is None:
            example = self._examples.setdefault(kind, why.message[:_EXAMPLE_CHARS])
            text = (
                f"{example} (of the failures of one batch that differ in their text, at most "
                f"{self._most:,} keep it; this one stands for all the others)"
            )
            other = self._others[kind, why.task] = replace(why, message=text, traceback="")
        return other


def _shortened(failure: Failure) -> Failure:
    text = failure.message
    if len(text) <= _MAX_MESSAGE_CHARS:
        return failure
    end = f"… ({len(text):,} characters)"
    return replace(failure, message=text[: _MAX_MESSAGE_CHARS - len(end)] + end)
