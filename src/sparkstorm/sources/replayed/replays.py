"""Dead letters on their way through the topology again, as messages of their spouts.

A letter stays in the store until its replay is acked and the batch of it committed; the request
for it stays until all of its letters have ended. So after a crash at any moment the next driver
finds both and goes on: a letter may run once more, and is never lost.
"""

import heapq
import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, final

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64, make_root
from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.dead_letters.office import DeadLetterOffice
from sparkstorm.dead_letters.requests import RequestBox
from sparkstorm.dead_letters.store import Places
from sparkstorm.errors import CheckpointError
from sparkstorm.packets.columns import CoderError
from sparkstorm.packets.load import Load
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.sources.load_verdicts import verdicts_by_load
from sparkstorm.sources.packing import encode_rows, packed_load
from sparkstorm.sources.planned import PlannedLoad
from sparkstorm.sources.replayed.open_request import OpenRequest
from sparkstorm.sources.retry import RetryPolicy
from sparkstorm.texts.logs import logger_of
from sparkstorm.verdicts import Failure

__all__ = ["ReplayLot", "Replays"]

_LOOK_SECS = 1.0
"""How often new requests are looked for."""

_logger = logger_of("sparkstorm.dead_letters")


@dataclass(frozen=True, slots=True)
class _Item:
    """One letter on its way; where it lies is not known of one that an earlier driver took."""

    letter: DeadLetter
    places: Places | None
    task: int
    row: tuple[object, ...]
    direct: int | None
    attempt: int = 1


@final
@dataclass(frozen=True, slots=True)
class ReplayLot:
    """Letters that travel in one load."""

    task: int
    key: StreamKey
    attempt: int
    items: list[_Item] = field(default_factory=list)

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters, in order, as JSON."""
        return tuple(json.dumps(item.letter.to_json()) for item in self.items)


class _Lane(NamedTuple):
    """What letters of one load have in common."""

    task: int
    key: StreamKey
    attempt: int


@final
class Replays:
    """The replays of one run. All methods run on one thread at a time."""

    def __init__(self, plan: Plan, office: DeadLetterOffice) -> None:
        self.replayed = 0
        self.given_up = 0
        self._plan = plan
        self._office = office
        self._store = office.store
        self._box = RequestBox(office.store)
        self._looked: float | None = None
        self._seen: set[str] = set()
        self._open: list[OpenRequest] = []
        self._on_the_way: set[str] = set()
        self._retries: list[tuple[float, int, _Item]] = []
        self._pending: dict[int, list[_Item | None]] = {}
        self._tie = itertools.count()
        self._policies = {
            spec.id: RetryPolicy.of(plan.settings(spec.id)) for spec in plan.topology.spouts
        }

    @property
    def pending(self) -> int:
        """Letters in a batch, open after it, or waiting for another try."""
        return len(self._on_the_way)

    @property
    def asked(self) -> bool:
        """Whether a batch may have to hold some: there is a request, if only for later."""
        return bool(self._open or self._on_the_way)

    @property
    def busy(self) -> bool:
        """Whether a request is not done, but for those whose letters cannot be read for long."""
        return bool(self._on_the_way) or any(request.busy for request in self._open)

    def look(self, now: float) -> None:
        """Look for new requests, if that was not done within the last second."""
        if self._looked is not None and now - self._looked < _LOOK_SECS:
            return
        self._looked = now
        for name in self._box.names():
            if name not in self._seen:
                self._take_up(name, now)
                self._seen.add(name)

    def take(self, limit: int, *, fresh: bool, now: float) -> list[ReplayLot]:
        """Return what a batch may hold: retries that are due, and ``fresh`` replays."""
        items: list[_Item] = []
        while len(items) < limit and self._retries and self._retries[0][0] <= now:
            items.append(heapq.heappop(self._retries)[2])
        for request in self._open if fresh else ():
            items += self._emit(request, min(request.due(now), limit - len(items)), now)
        lots: dict[_Lane, ReplayLot] = {}
        for item in items:
            lane = _Lane(item.task, StreamKey(item.letter.spout, item.letter.stream), item.attempt)
            lots.setdefault(lane, ReplayLot(*lane)).items.append(item)
        self._close_requests(now)
        return list(lots.values())

    def take_again(self, task: int, planned: PlannedLoad) -> ReplayLot | None:
        """Return the letters of a load of an earlier driver, which is to be run again as it was.

        They may be gone from the store, acked or discarded. None if the topology has changed so
        that they are no messages of it any more.
        """
        letters = [DeadLetter.from_json(json.loads(text)) for text in planned.letters]
        items = [item for letter in letters if (item := self._item(letter)) is not None]
        if len(items) < len(letters):
            return None
        self._on_the_way.update(letter.id for letter in letters)
        key = StreamKey(planned.load.component, planned.load.stream)
        tried = [replace(item, attempt=planned.attempt) for item in items]
        return ReplayLot(task, key, planned.attempt, tried)

    def load(self, lot: ReplayLot, sequence: int, lane: int) -> Load:
        """Make the load of a lot and note it as pending."""
        first = make_root(lot.task, sequence)
        body = encode_rows(self._plan.stream(lot.key), [item.row for item in lot.items])
        direct = [item.direct for item in lot.items if item.direct is not None]
        self._pending[first] = list(lot.items)
        return packed_load(lot.key, lot.task, body, first=first, lane=lane, direct=direct)

    def deliver(self, acked: U64, failed: FailedRoots, now: float) -> None:
        """Remove the letters that were acked; those that failed are tried again, or stay."""
        done: list[_Item] = []
        faulty: list[tuple[_Item, Failure]] = []
        counts = {first: len(items) for first, items in self._pending.items()}
        for first, fine, broken in verdicts_by_load(counts, acked, failed):
            items = self._pending[first]
            done += filter(None, (_pop(items, root - first) for root in fine.tolist()))
            faulty += [
                (item, why)
                for root, why in broken.items()
                if (item := _pop(items, root - first)) is not None
            ]
            if not any(items):
                del self._pending[first]
        lost = [(item, why) for item, why in faulty if not self._try_again(item, why, now)]
        if lost:
            self._bring_back(lost, now)
        if done:
            self._store.remove([item.letter.id for item in done], _places(done))
            self.replayed += len(done)
            self._end(done, now)

    def _take_up(self, name: str, now: float) -> None:
        if not self._plan.tracked:
            _logger.warning("dead letters wait for a replay, but nothing is tracked (ackers = 0)")
            return
        try:
            request = self._box.read(name)
            if request is not None:
                self._open.append(OpenRequest(request, self._store, now))
        except CheckpointError as error:  # what people may mend while the topology goes on
            _logger.error("dead letters cannot be replayed: %s", error)

    def _emit(self, request: OpenRequest, limit: int, now: float) -> list[_Item]:
        items: list[_Item] = []
        while len(items) < limit and (found := request.next(self._on_the_way, now)) is not None:
            letter, places = found
            item = self._item(letter, places)
            if item is None:
                request.left.discard(letter.id)
                continue
            self._on_the_way.add(letter.id)
            request.emitted += 1
            items.append(item)
        return items

    def _item(self, letter: DeadLetter, places: Places | None = None) -> _Item | None:
        """Make a letter a message of this topology, or say why it cannot be."""
        try:
            return self._as_message(letter, places)
        except (_Misfit, CoderError) as error:
            _logger.error("dead letter %s cannot be replayed, it stays: %s", letter.id, error)
            return None

    def _as_message(self, letter: DeadLetter, places: Places | None) -> _Item:
        key = StreamKey(letter.spout, letter.stream)
        tasks = self._plan.tasks.get(letter.spout)
        if tasks is None or letter.spout not in self._policies:
            raise _Misfit(f"the topology has no spout {letter.spout!r} any more")
        if letter.stream not in self._plan.spec(letter.spout).streams:
            raise _Misfit(f"the spout has no stream {letter.stream!r} any more")
        stream, payload = self._plan.stream(key), letter.payload
        if payload is None or not letter.replayable:
            raise _Misfit(letter.note or "its payload holds values that cannot be written as JSON")
        if set(stream.names) != set(payload):
            raise _Misfit(f"the stream has other fields now: {', '.join(stream.names)}")
        row = tuple(payload[name] for name in stream.names)
        encode_rows(stream, [row])
        direct = self._direct(letter) if stream.direct else None
        return _Item(letter, places, tasks[letter.task % len(tasks)], row, direct)

    def _direct(self, letter: DeadLetter) -> int:
        component, index = letter.direct or ("", 0)
        tasks = self._plan.tasks.get(component)
        if tasks is None or index >= len(tasks):
            raise _Misfit(f"the task {index} of {component!r} that it went to is gone")
        return tasks[index]

    def _try_again(self, item: _Item, failure: Failure, now: float) -> bool:
        """Put a letter by for another try; False if there is to be none."""
        wait = self._wait(item, failure)
        if wait is None:
            return False
        again = replace(item, attempt=item.attempt + failure.counted)
        heapq.heappush(self._retries, (now + wait, next(self._tie), again))
        return True

    def _bring_back(self, lost: Sequence[tuple[_Item, Failure]], now: float) -> None:
        """Make letters again of replays that failed for good, all in one file."""
        items = [item for item, _ in lost]
        self._store.replace([self._again(item, failure) for item, failure in lost], _places(items))
        self._office.count(len(lost), 0)
        self.given_up += len(lost)
        for item, failure in lost:
            _logger.error("dead letter %s failed again: %s", item.letter.id, failure)
        self._end(items, now)

    def _again(self, item: _Item, failure: Failure) -> DeadLetter:
        attempts = item.attempt + failure.attempt - 1  # its batch may have been run again
        return replace(
            item.letter,
            run=self._office.run,
            failure=replace(failure, attempt=attempts),
            attempts=item.letter.attempts + attempts,
            last_time=self._office.clock.wall(),
            replays=item.letter.replays + 1,
        )

    def _wait(self, item: _Item, failure: Failure) -> float | None:
        """Seconds until the next try, or None if there is to be none."""
        policy, key = self._policies[item.letter.spout], int(item.letter.id, 16)
        return policy.wait(failure, attempt=item.attempt, key=key)

    def _end(self, items: Sequence[_Item], now: float) -> None:
        ids = {item.letter.id for item in items}
        self._on_the_way -= ids
        for request in self._open:
            request.end(ids)
        self._close_requests(now)

    def _close_requests(self, now: float) -> None:
        self._open = [one for one in self._open if one.left or not one.forget(self._box, now)]


class _Misfit(Exception):
    """A letter does not fit this topology."""


def _pop(items: list[_Item | None], place: int) -> _Item | None:
    item, items[place] = items[place], None
    return item


def _places(items: Iterable[_Item]) -> list[str] | None:
    """The files that hold these letters; None, for any, if that is not known of one of them."""
    names: set[str] = set()
    for item in items:
        if item.places is None:
            return None
        names.update(item.places)
    return sorted(names)
