"""Held tuples: what a task keeps over batches, and how it comes back into a batch.

A tuple that is held stays open: its share is contributed only when it is acked, in whatever batch
that is, and until then the ledger keeps its roots. What is stored is all that takes: its values,
where it came from, its roots with their shares, and which driver's life it belongs to. In a later
batch the record becomes a tuple of the inbox again as soon as the bolt asks for it (it is
*adopted*), so emitting, acking and failing do not know the difference.

A record goes when its tuple was acked or failed, when all of its roots have ended without it, and
when it belongs to a driver that is gone: the source gives those messages again, and none must
count twice. A tuple of several roots stays as long as one of them is open; what it contributes to
the others falls away in the ledger. Untracked tuples come from nowhere again, so they stay.

Tuples of one grove share its roots, in memory and in the log: the records of a batch have the same
bytes object, which a pickle writes once.
"""

import pickle
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from sparkstorm.acking.ids import GROVE, U64
from sparkstorm.errors import TrackingError
from sparkstorm.packets.columns import pickled
from sparkstorm.packets.inbox import OPEN, Inbox, PacketOrigin
from sparkstorm.state.kept import ATOMS, DELETED, MISSING, Kept
from sparkstorm.state.names import check_key
from sparkstorm.state.spaces import Space
from sparkstorm.state.undo import Call
from sparkstorm.texts.showing import shown
from sparkstorm.tuples import Tuple

__all__ = ["Bag", "Holding"]


class _Record(NamedTuple):
    """A held tuple as it is stored; ``groves`` has the roots of those that are among its roots."""

    key: Any
    values: tuple[Any, ...] | Kept
    names: tuple[str, ...]
    component: str
    stream: str
    task: int
    roots: tuple[int, ...]
    shares: tuple[int, ...]
    attempt: int
    run: str
    since: float
    groves: tuple[tuple[int, bytes], ...] = ()


@final
class Holding:
    """What all bags of a task share in one batch: its inbox, and which bag holds which tuple."""

    def __init__(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self._places: dict[int, list[tuple[Bag, int]]] = {}
        self._numbers = 0

    def next_number(self) -> int:
        """A number for a record: ascending over the task's batches, the same in a repeated run."""
        self._numbers += 1
        return self.inbox.batch.number << 32 | self._numbers

    def place(self, index: int, bag: "Bag", number: int) -> None:
        """Note that a bag has a tuple of the inbox under a number."""
        self._places.setdefault(index, []).append((bag, number))

    def place_of(self, index: int) -> "tuple[Bag, int] | None":
        """Where a tuple of the inbox is held now."""
        for bag, number in self._places.get(index, ()):
            if bag.find(number) is not MISSING:
                return bag, number
        return None

    def let_go(self) -> None:
        """Drop the tuples that were acked or failed in this batch."""
        status = self.inbox.status
        for index, places in self._places.items():
            if status[index] != OPEN:
                for bag, number in places:
                    bag.let_go(number)


@final
class Bag(Space):
    """The tuples held under one name (:class:`sparkstorm.HeldTuples`), numbered as they came."""

    PREFIX: ClassVar = "tuples/"
    """The names of all of them start so."""

    __slots__ = ("_by_grove", "_by_key", "_by_root", "_data", "_holding", "_run", "_tuples")

    def __init__(self, name: str, call: Call) -> None:
        super().__init__(name, call)
        self._data: dict[int, _Record] = {}
        self._by_key: dict[Any, dict[int, None]] = {}
        self._by_root: dict[int, list[int]] = {}
        self._by_grove: dict[int, list[int]] = {}
        self._holding = Holding(Inbox.empty())
        self._tuples: dict[int, Tuple] = {}
        self._run: str | None = None

    # --- for the bolt --------------------------------------------------------------------------

    def add(self, key: Any, tup: Tuple) -> None:
        """Hold a tuple under a key."""
        check_key(key)
        index = self._mine(tup)
        place = self._holding.place_of(index)
        if place is not None:
            if place[0] is self and self.find(place[1]).key == key:
                return
            raise TrackingError(
                f"{shown(tup)} is held already, under the key "
                f"{shown(place[0].find(place[1]).key)} of "
                f"{place[0].name!r}: remove it there first"
            )
        record = self._record(key, tup, index)
        number = self._holding.next_number()
        self._lend(number, index, tup)
        self.change(number, record)

    def get(self, key: Any) -> list[Tuple]:
        """Return what is held under a key, the oldest first."""
        numbers = self._by_key.get(key)
        if not numbers:
            return []
        status = self._holding.inbox.status
        found = map(self._tuple, sorted(numbers))
        return [tup for tup in found if status[tup._index] == OPEN]  # noqa: SLF001

    def pop(self, key: Any) -> list[Tuple]:
        """Return what is held under a key and hold it no longer."""
        found = self.get(key)
        for number in list(self._by_key.get(key, ())):
            self.change(number, DELETED)
        return found

    def remove(self, tup: Tuple) -> None:
        """Hold one tuple no longer."""
        place = self._holding.place_of(self._mine(tup))
        if place is not None and place[0] is self:
            self.change(place[1], DELETED)

    def keys(self) -> list[Any]:
        """The keys under which anything is held, the one with the oldest tuple first."""
        oldest = {key: min(numbers) for key, numbers in self._by_key.items() if self._has(numbers)}
        return sorted(oldest, key=oldest.__getitem__)

    def held_since(self, time: float) -> list[Tuple]:
        """Return what is held since that time or longer, the oldest first."""
        status = self._holding.inbox.status
        old = sorted(number for number, record in self._data.items() if record.since <= time)
        return [tup for tup in map(self._tuple, old) if status[tup._index] == OPEN]  # noqa: SLF001

    def __contains__(self, key: Any) -> bool:
        return self._has(self._by_key.get(key, ()))

    def __len__(self) -> int:
        lent, status = self._tuples, self._holding.inbox.status
        gone = sum(
            number in self._data and status[tup._index] != OPEN  # noqa: SLF001
            for number, tup in lent.items()
        )
        return len(self._data) - gone

    # --- for the engine ------------------------------------------------------------------------

    def begin(self, holding: Holding, ended: Iterable[int]) -> None:
        """Start a batch: drop what is not to be counted again, before the bolt sees it.

        Args:
            holding: what the task's bags share in this batch.
            ended: roots that ended without the tuples held of them.
        """
        self._holding = holding
        self._tuples = {}
        run = holding.inbox.batch.run
        if self._run != run:
            self._run = run
            for number, record in list(self._data.items()):
                if record.roots and record.run != run:
                    self.change(number, DELETED)
        ended = list(ended)
        gone = {root for root in ended if root in self._by_root}
        for number in sorted({n for root in gone for n in self._by_root[root]}):
            self._forget_roots(number, gone)
        if ended and self._by_grove:
            self._thin_groves(np.array(ended, np.uint64))

    def leave(self, holding: Holding) -> None:
        """End a batch: keep its inbox, and what was made of it, from being held any longer."""
        self._holding = holding
        self._tuples = {}

    def let_go(self, number: int) -> None:
        """Remove a record if it is there."""
        if number in self._data:
            self.change(number, DELETED)

    def change(self, key: Any, value: Any) -> None:
        """Set or remove a record."""
        super().change(key, value)
        self._update((key,))

    def restore(self, key: Any, entry: Any) -> None:
        """Set a record to what it was."""
        super().restore(key, entry)
        self._update((key,))

    def drop(self) -> None:
        """The batch has not committed."""
        changed = self.fresh()
        super().drop()
        self._update(changed)

    def apply(self, changes: dict[Any, Any]) -> None:
        """Take over what a batch has changed and committed."""
        super().apply(changes)
        self._update(changes)

    def forget(self) -> None:
        """Empty it: it is going to be read anew."""
        super().forget()
        self._data.clear()
        self._by_key.clear()
        self._by_root.clear()
        self._by_grove.clear()

    def __repr__(self) -> str:
        return f"Bag({self.name}: {len(self)} held under {len(self._by_key)} keys)"

    def _update(self, numbers: Iterable[int]) -> None:
        """Keep the records that are seen, and their indexes, in step with the space."""
        for number in numbers:
            before, now = self._data.pop(number, None), self.find(number)
            if before is not None:
                self._unlist(number, before)
            if now is not MISSING:
                self._list(number, now)

    def _list(self, number: int, record: _Record) -> None:
        if record.roots and record.run != self._run:
            self._run = None  # others wrote it, or an undo brought it back: look through all
        self._data[number] = record
        self._by_key.setdefault(record.key, {})[number] = None
        for root in record.roots:
            self._listing(root).setdefault(root, []).append(number)

    def _unlist(self, number: int, record: _Record) -> None:
        numbers = self._by_key[record.key]
        del numbers[number]
        if not numbers:
            del self._by_key[record.key]
        for root in record.roots:
            listing = self._listing(root)
            listed = listing[root]
            listed.remove(number)
            if not listed:
                del listing[root]

    def _listing(self, root: int) -> dict[int, list[int]]:
        return self._by_root if root < GROVE else self._by_grove

    def _forget_roots(self, number: int, gone: set[int]) -> None:
        record: _Record = self._data[number]
        left = [
            pair for pair in zip(record.roots, record.shares, strict=True) if pair[0] not in gone
        ]
        if left:
            roots, shares = zip(*left, strict=True)
            self.change(number, record._replace(roots=roots, shares=shares))
        else:
            self.change(number, DELETED)

    def _thin_groves(self, gone: U64) -> None:
        """Take roots that have ended out of the groves, once for all records of each."""
        groves = self._holding.inbox.groves
        for grove, numbers in list(self._by_grove.items()):
            record: _Record = self._data[numbers[0]]
            groves.unpack(grove, dict(record.groves)[grove])
            roots = groves[grove]
            left = roots[~np.isin(roots, gone)]
            if len(left) == len(roots):
                continue
            thinner = groves.plant(left) if len(left) else None
            for number in sorted(numbers):
                self._replace_grove(number, grove, thinner)

    def _replace_grove(self, number: int, grove: int, thinner: int | None) -> None:
        record: _Record = self._data[number]
        shares = dict(zip(record.roots, record.shares, strict=True))
        share, groves = shares.pop(grove), dict(record.groves)
        del groves[grove]
        if thinner is not None:
            shares[thinner] = shares.get(thinner, 0) ^ share
            groves[thinner] = self._holding.inbox.groves.pack(thinner)
        if not shares:
            self.change(number, DELETED)
            return
        self.change(
            number,
            record._replace(
                roots=tuple(shares), shares=tuple(shares.values()), groves=tuple(groves.items())
            ),
        )

    def _has(self, numbers: Iterable[int]) -> bool:
        status = self._holding.inbox.status
        lent = self._tuples
        return any(
            number not in lent or status[lent[number]._index] == OPEN  # noqa: SLF001
            for number in numbers
        )

    def _tuple(self, number: int) -> Tuple:
        tup = self._tuples.get(number)
        if tup is None:
            record: _Record = self._data[number]
            inbox = self._holding.inbox
            origin = PacketOrigin(
                inbox, inbox.fields(record.names), record.component, record.stream, record.task
            )
            for grove, data in record.groves:
                inbox.groves.unpack(grove, data)
            index = inbox.adopt(record.roots, record.shares, record.attempt)
            tup = Tuple(_values_of(record), origin, index)
            self._lend(number, index, tup)
        return tup

    def _lend(self, number: int, index: int, tup: Tuple) -> None:
        self._tuples[number] = tup
        self._holding.place(index, self, number)

    def _mine(self, tup: Tuple) -> int:
        if not issubclass(type(tup), Tuple):
            raise TrackingError(f"{shown(tup)} cannot be held: it is no tuple")
        index, inbox = tup._index, self._holding.inbox  # noqa: SLF001
        if tup._origin.inbox is not inbox:  # type: ignore[attr-defined]  # noqa: SLF001
            raise TrackingError(
                f"{shown(tup)} cannot be held any more: this task did not receive it in this "
                f"batch, and it was not held at the batch's end"
            )
        if inbox.status[index] != OPEN:
            raise TrackingError(f"{shown(tup)} cannot be held: it was acked or failed before")
        return index

    def _record(self, key: Any, tup: Tuple, index: int) -> _Record:
        inbox, origin = self._holding.inbox, tup._origin  # noqa: SLF001
        roots, shares = inbox.pairs_of(index)
        return _Record(
            key=key,
            values=_to_keep(tuple(tup.values)),
            names=origin.names,
            component=origin.component,
            stream=origin.stream,
            task=origin.task,
            roots=roots,
            shares=shares,
            attempt=tup.attempt,
            run=inbox.batch.run,
            since=inbox.batch.time,
            groves=tuple((root, inbox.groves.pack(root)) for root in roots if root >= GROVE),
        )


def _to_keep(values: tuple[Any, ...]) -> tuple[Any, ...] | Kept:
    """Return values that stay as they are, and that the batch's log can take.

    Raises:
        CoderError: one of them cannot be pickled, or not be read again; whoever wants to hold it
            hears of it now, since no batch could be begun or written with it.
    """
    return values if ATOMS.issuperset(map(type, values)) else Kept(pickled(list(values)))


def _values_of(record: _Record) -> tuple[Any, ...]:
    if not isinstance(record.values, Kept):
        return record.values
    return tuple(pickle.loads(record.values.data))  # noqa: S301 - our own worker's
