"""Held tuples: tuples that a task keeps over batches, and brings back into a batch.

A held tuple stays open: the tuple's share is contributed only by an ack, in any later batch, and
until then the ledger keeps the roots. A stored record has all that an ack takes: the values, the
origin, the roots with their shares, and the driver's life. When the bolt asks for a held tuple in a
later batch, the record becomes a tuple of the inbox again (the inbox *adopts* it), so emits, acks
and fails work as usual.

A record is removed

- when its tuple is acked or failed;
- when all of its roots have ended without it. A record of several roots stays while one of them is
  open; the ledger ignores contributions to the others;
- when it belongs to a dead driver: the source gives the messages again, and no message may count
  twice. Untracked tuples stay, because no source gives them again.

Tuples of a grove share the grove's roots, in memory and in the log: all records of a batch have the
same bytes object, which a pickle writes once.
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
from sparkstorm.state.spaces.space import Space
from sparkstorm.state.spaces.undo import Call
from sparkstorm.texts.showing import shown
from sparkstorm.tuples import Tuple

__all__ = ["HeldBatch", "HeldSpace"]


class _Record(NamedTuple):
    """The stored form of a held tuple; ``groves`` has the roots of each grove among ``roots``."""

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
class HeldBatch:
    """A batch's facts for all spaces of held tuples: the inbox, and each held tuple's place."""

    def __init__(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self._places: dict[int, list[tuple[HeldSpace, int]]] = {}
        self._numbers = 0

    def next_number(self) -> int:
        """Return a number for a record: ascending over batches, and the same in a repeated run."""
        self._numbers += 1
        # Numbers are keys of the log, so a number must never come back with another record.
        return self.inbox.batch.number << 32 | self._numbers

    def place(self, index: int, space: "HeldSpace", number: int) -> None:
        """Note that a space holds a tuple of the inbox under a number."""
        self._places.setdefault(index, []).append((space, number))

    def place_of(self, index: int) -> "tuple[HeldSpace, int] | None":
        """Return the space and number that hold a tuple of the inbox; None if none does."""
        for space, number in self._places.get(index, ()):
            if space.find(number) is not MISSING:
                return space, number
        return None

    def discard_ended(self) -> None:
        """Discard the tuples that were acked or failed in this batch."""
        status = self.inbox.status
        for index, places in self._places.items():
            if status[index] != OPEN:
                for space, number in places:
                    space.discard(number)


@final
class HeldSpace(Space):
    """The tuples held under a name (:class:`sparkstorm.HeldTuples`), numbered as they arrived."""

    PREFIX: ClassVar = "tuples/"
    """The prefix of the names of these spaces."""

    __slots__ = ("_batch", "_by_grove", "_by_key", "_by_root", "_data", "_run", "_tuples")

    def __init__(self, name: str, call: Call) -> None:
        super().__init__(name, call)
        self._data: dict[int, _Record] = {}
        self._by_key: dict[Any, dict[int, None]] = {}
        self._by_root: dict[int, list[int]] = {}
        self._by_grove: dict[int, list[int]] = {}
        self._batch = HeldBatch(Inbox.empty())
        self._tuples: dict[int, Tuple] = {}
        self._run: str | None = None

    # --- for the bolt --------------------------------------------------------------------------

    def add(self, key: Any, tup: Tuple) -> None:
        """Hold a tuple under a key."""
        check_key(key)
        index = self._mine(tup)
        place = self._batch.place_of(index)
        # Held twice, a tuple would be acked twice, or acked here and open there.
        if place is not None:
            if place[0] is self and self.find(place[1]).key == key:
                return
            raise TrackingError(
                f"{shown(tup)} is held already, under the key "
                f"{shown(place[0].find(place[1]).key)} of "
                f"{place[0].name!r}: remove it there first"
            )
        record = self._record(key, tup, index)
        number = self._batch.next_number()
        self._lend(number, index, tup)
        self.change(number, record)

    def get(self, key: Any) -> list[Tuple]:
        """Return the tuples held under a key, the oldest first."""
        numbers = self._by_key.get(key)
        if not numbers:
            return []
        status = self._batch.inbox.status
        found = map(self._tuple, sorted(numbers))
        return [tup for tup in found if status[tup._index] == OPEN]  # noqa: SLF001

    def pop(self, key: Any) -> list[Tuple]:
        """Return the tuples held under a key, and no longer hold them."""
        found = self.get(key)
        for number in list(self._by_key.get(key, ())):
            self.change(number, DELETED)
        return found

    def remove(self, tup: Tuple) -> None:
        """No longer hold a tuple."""
        place = self._batch.place_of(self._mine(tup))
        if place is not None and place[0] is self:
            self.change(place[1], DELETED)

    def keys(self) -> list[Any]:
        """Return the keys with held tuples, the key of the oldest tuple first."""
        oldest = {key: min(numbers) for key, numbers in self._by_key.items() if self._has(numbers)}
        return sorted(oldest, key=oldest.__getitem__)

    def held_since(self, time: float) -> list[Tuple]:
        """Return the tuples held since that time or longer, the oldest first."""
        status = self._batch.inbox.status
        old = sorted(number for number, record in self._data.items() if record.since <= time)
        return [tup for tup in map(self._tuple, old) if status[tup._index] == OPEN]  # noqa: SLF001

    def __contains__(self, key: Any) -> bool:
        return self._has(self._by_key.get(key, ()))

    def __len__(self) -> int:
        lent, status = self._tuples, self._batch.inbox.status
        gone = sum(
            number in self._data and status[tup._index] != OPEN  # noqa: SLF001
            for number, tup in lent.items()
        )
        return len(self._data) - gone

    # --- for the engine ------------------------------------------------------------------------

    def begin(self, batch: HeldBatch, ended: Iterable[int]) -> None:
        """Start a batch: remove a dead driver's records and ended roots, before the bolt sees any.

        Args:
            batch: the facts for all spaces of held tuples in this batch.
            ended: roots that ended although tuples of them are held.
        """
        self._batch = batch
        self._tuples = {}
        run = batch.inbox.batch.run
        if self._run != run:
            self._run = run
            for number, record in list(self._data.items()):
                # Untracked records stay: their tuples come from no source.
                if record.roots and record.run != run:
                    self.change(number, DELETED)
        ended = list(ended)
        gone = {root for root in ended if root in self._by_root}
        for number in sorted({n for root in gone for n in self._by_root[root]}):
            self._remove_roots(number, gone)
        if ended and self._by_grove:
            self._thin_groves(np.array(ended, np.uint64))

    def finish(self, batch: HeldBatch) -> None:
        """End a batch: keep neither its inbox nor its tuples alive."""
        self._batch = batch
        self._tuples = {}

    def discard(self, number: int) -> None:
        """Remove a record if there is one."""
        if number in self._data:
            self.change(number, DELETED)

    def change(self, key: Any, value: Any) -> None:
        """Set or remove a record."""
        super().change(key, value)
        self._update((key,))

    def restore(self, key: Any, entry: Any) -> None:
        """Set a record to its value before a change."""
        super().restore(key, entry)
        self._update((key,))

    def roll_back(self) -> None:
        """Drop the batch's changes: the batch has not committed."""
        changed = self.fresh()
        super().roll_back()
        self._update(changed)

    def apply(self, changes: dict[Any, Any]) -> None:
        """Apply committed changes to the base."""
        super().apply(changes)
        self._update(changes)

    def clear(self) -> None:
        """Drop the whole content before it is read anew."""
        super().clear()
        self._data.clear()
        self._by_key.clear()
        self._by_root.clear()
        self._by_grove.clear()

    def __repr__(self) -> str:
        return f"HeldSpace({self.name}: {len(self)} held under {len(self._by_key)} keys)"

    def _update(self, numbers: Iterable[int]) -> None:
        """Keep the visible records and their indexes in step with the space."""
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

    def _remove_roots(self, number: int, gone: set[int]) -> None:
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
        """Remove ended roots from the groves, once for all records of a grove."""
        groves = self._batch.inbox.groves
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
            groves[thinner] = self._batch.inbox.groves.pack(thinner)
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
        status = self._batch.inbox.status
        lent = self._tuples
        return any(
            number not in lent or status[lent[number]._index] == OPEN  # noqa: SLF001
            for number in numbers
        )

    def _tuple(self, number: int) -> Tuple:
        tup = self._tuples.get(number)
        if tup is None:
            record: _Record = self._data[number]
            inbox = self._batch.inbox
            origin = PacketOrigin(
                inbox, inbox.fields(record.names), record.component, record.stream, record.task
            )
            # The batch may know the grove already, from packets or from another record.
            for grove, data in record.groves:
                inbox.groves.unpack(grove, data)
            index = inbox.adopt(record.roots, record.shares, record.attempt)
            tup = Tuple(_values_of(record), origin, index)
            self._lend(number, index, tup)
        return tup

    def _lend(self, number: int, index: int, tup: Tuple) -> None:
        self._tuples[number] = tup
        self._batch.place(index, self, number)

    def _mine(self, tup: Tuple) -> int:
        if not issubclass(type(tup), Tuple):
            raise TrackingError(f"{shown(tup)} cannot be held: it is no tuple")
        index, inbox = tup._index, self._batch.inbox  # noqa: SLF001
        if tup._origin.inbox is not inbox:  # type: ignore[attr-defined]  # noqa: SLF001
            raise TrackingError(
                f"{shown(tup)} cannot be held any more: this task did not receive it in this "
                f"batch, and it was not held at the batch's end"
            )
        if inbox.status[index] != OPEN:
            raise TrackingError(f"{shown(tup)} cannot be held: it was acked or failed before")
        return index

    def _record(self, key: Any, tup: Tuple, index: int) -> _Record:
        inbox, origin = self._batch.inbox, tup._origin  # noqa: SLF001
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
    """Return values in an immutable form that the batch's log can store.

    Raises:
        CoderError: a value cannot be pickled, or not be read again. The holder hears of it now,
            because no batch could be written with the value, or begun.
    """
    return values if ATOMS.issuperset(map(type, values)) else Kept(pickled(list(values)))


def _values_of(record: _Record) -> tuple[Any, ...]:
    if not isinstance(record.values, Kept):
        return record.values
    return tuple(pickle.loads(record.values.data))  # noqa: S301 - our own worker's
