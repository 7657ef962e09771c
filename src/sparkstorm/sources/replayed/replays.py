"""Replays: dead letters on their way through the topology again, as messages of their spouts.

A letter stays in the store until its replay is acked and the replay's batch committed; a request
stays until all of its letters have ended. So after a crash at any moment the next driver finds both
and goes on: a letter may run once more, and is never lost.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, final

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64
from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.dead_letters.letter_queue import DeadLetterQueue
from sparkstorm.dead_letters.requests import RequestBox
from sparkstorm.errors import CheckpointError
from sparkstorm.packets.load import Load
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.sources.packing import encode_rows, packed_load
from sparkstorm.sources.planned import PlannedLoad
from sparkstorm.sources.replayed.open_request import OpenRequest
from sparkstorm.sources.replayed.replayed_letter import LetterReader, ReplayedLetter
from sparkstorm.sources.replayed.unfinished import ReplayedMessages
from sparkstorm.sources.retry import RetryPolicy
from sparkstorm.sources.source import Order, Progress
from sparkstorm.texts.logs import logger_of
from sparkstorm.verdicts import Failure

__all__ = ["Replays"]

_LOOK_SECS = 1.0
"""How often new requests are looked for."""

_MOST_REQUESTS = 1_000
"""So many requests are remembered, for people."""

_logger = logger_of("sparkstorm.dead_letters")


class _LoadKey(NamedTuple):
    """The properties that all letters of one load share."""

    task: int
    stream: StreamKey
    attempt: int


@final
class Replays:
    """The replays of one run: a :class:`sparkstorm.sources.source.Source`.

    Args:
        plan: the topology's plan.
        dead_letters: keeps the letters.
    """

    component = ""
    owner = ""
    bounds = (0, 1 << 64)
    left_failed = 0
    message_bytes = 0.0
    idle = True
    """A run that takes no new messages need not wait: the requests stay for the next run."""

    def __init__(self, plan: Plan, dead_letters: DeadLetterQueue) -> None:
        self.replayed = 0
        self.given_up = 0
        self._plan = plan
        self._dead_letters = dead_letters
        self._store = dead_letters.store
        self._box = RequestBox(dead_letters.store)
        self._reader = LetterReader(plan)
        self._looked: float | None = None
        self._seen: set[str] = set()
        self._open: list[OpenRequest] = []
        self._on_the_way: set[str] = set()
        self._acked: dict[str, int] = {}
        self.messages = ReplayedMessages(plan)
        """The letters on their way."""
        self._window, self._retries = self.messages.window, self.messages.retries
        self._policies = {
            spec.id: RetryPolicy.of(plan.settings(spec.id)) for spec in plan.topology.spouts
        }

    # --- how the replays stand -------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """Letters in a batch, open after it, or waiting for another try."""
        return len(self._on_the_way)

    @property
    def in_flight(self) -> int:
        """Letters in a batch, or open after it."""
        return len(self._window)

    @property
    def ready(self) -> bool:
        """Whether a batch may have to hold letters: there is a request, if only for later."""
        return bool(self._open or self._on_the_way)

    @property
    def widths(self) -> set[int]:
        """Nothing: a letter is never suspected, since its payload is looked at before a run."""
        return set()

    @property
    def drained(self) -> bool:
        """Whether all requests are done, but for letters that cannot be read for long."""
        return not self._on_the_way and not any(request.busy for request in self._open)

    def acked(self, request: str) -> int:
        """Return how many letters of a request of this run were acked."""
        return self._acked.get(request, 0)

    def partitions(self) -> Sequence[Any]:
        """Return nothing: letters have no partitions."""
        return ()

    # --- from one driver to the next -------------------------------------------------------------

    def recover(self, progress: Progress | None, now: float) -> None:
        """Look for requests: they are all that outlives a driver."""
        self.look(now)

    def forget_earlier(self) -> None:
        """Nothing is kept of an earlier driver."""

    def progress(self, planned: Collection[int]) -> Progress:
        """Return nothing: letters and requests lie in the store."""
        return Progress()

    def adopt(self, planned: PlannedLoad, order: Order, *, whole: bool) -> PlannedLoad | None:
        """Return the letters of an earlier driver's load, if its batch must remain what it was.

        The letters may be gone from the store by now, acked or discarded. Returns None if the
        topology has changed so that the letters are no messages of it any more.
        """
        if not whole:
            return None
        letters = [DeadLetter.from_json(json.loads(text)) for text in planned.letters]
        read = [one for letter in letters if (one := self._reader.read(letter)) is not None]
        if len(read) < len(letters):
            return None
        self._on_the_way.update(letter.id for letter in letters)
        load = planned.load
        task = read[0].task if read else load.task
        key = _LoadKey(task, StreamKey(load.component, load.stream), planned.attempt)
        again = [replace(one, attempt=planned.attempt) for one in read]
        return replace(self._planned(key, again, order, load.lane), partition=planned.partition)

    def take_back(self, planned: PlannedLoad, width: int, now: float) -> None:
        """Nothing: an adopted load is run as it was."""

    def close(self) -> None:
        """Nothing to close."""

    def look(self, now: float) -> None:
        """Look for new requests, if that was not done within the last second."""
        if self._looked is not None and now - self._looked < _LOOK_SECS:
            return
        self._looked = now
        for name in self._box.names():
            if name not in self._seen:
                self._read_request(name, now)
                self._seen.add(name)

    def _read_request(self, name: str, now: float) -> None:
        if not self._plan.tracked:
            _logger.warning("dead letters wait for a replay, but nothing is tracked (ackers = 0)")
            return
        try:
            request = self._box.read(name)
            if request is not None:
                self._open.append(OpenRequest(request, self._store, now))
        except CheckpointError as error:  # what people may mend while the topology goes on
            _logger.error("dead letters cannot be replayed: %s", error)

    # --- planning --------------------------------------------------------------------------------

    def plan(self, order: Order) -> list[PlannedLoad]:
        """Return retries that are due, and fresh replays."""
        letters = self._retries.take(order.limit, order.now)
        for request in self._open if order.fresh else ():
            limit = min(request.due(order.now), order.limit - len(letters))
            letters += self._emit(request, limit, order.now)
        groups: dict[_LoadKey, list[ReplayedLetter]] = {}
        for one in letters:
            stream = StreamKey(one.letter.spout, one.letter.stream)
            groups.setdefault(_LoadKey(one.task, stream, one.attempt), []).append(one)
        self._close_requests(order.now)
        numbers = order.numbers
        return [
            self._planned(key, group, order, numbers.lane(key.task))
            for key, group in groups.items()
        ]

    def plan_suspects(self, order: Order, width: int) -> list[PlannedLoad]:
        """Return nothing: no letter is suspected."""
        return []

    def _emit(self, request: OpenRequest, limit: int, now: float) -> list[ReplayedLetter]:
        letters: list[ReplayedLetter] = []
        while len(letters) < limit and (found := request.next(self._on_the_way, now)) is not None:
            letter, places = found
            one = self._reader.read(letter, places)
            if one is None:
                request.left.discard(letter.id)
                continue
            self._on_the_way.add(letter.id)
            request.emitted += 1
            letters.append(one)
        return letters

    def _planned(
        self, key: _LoadKey, letters: list[ReplayedLetter], order: Order, lane: int
    ) -> PlannedLoad:
        """Make the load of letters, and put it into the window."""
        first = order.numbers.first(key.task)
        body = encode_rows(self._plan.stream(key.stream), [one.row for one in letters])
        direct = [one.direct for one in letters if one.direct is not None]
        load = packed_load(key.stream, key.task, body, first=first, lane=lane, direct=direct)
        self._window.add(first, len(letters), letters)
        kept = [json.dumps(one.letter.to_json()) for one in letters if self._plan.exactly_once]
        return PlannedLoad(
            load=order.numbers.note(load),
            attempt=key.attempt,
            owner=self._plan.name_of(key.task),
            letters=tuple(kept),
        )

    # --- verdicts --------------------------------------------------------------------------------

    def deliver(self, acked: U64, failed: FailedRoots, now: float) -> None:
        """Remove the letters that were acked; failed letters are tried again, or stay."""
        done: list[ReplayedLetter] = []
        lost: list[tuple[ReplayedLetter, Failure]] = []
        for first, letters, fine, broken in self._window.verdicts(acked, failed):
            done += [letters[place] for place in fine.tolist()]
            lost += [
                (letters[root - first], why)
                for root, why in broken.items()
                if not self._try_again(letters[root - first], why, now)
            ]
        if lost:
            self._bring_back(lost, now)
        if done:
            self._store.remove([one.letter.id for one in done], _places(done))
            self.replayed += len(done)
            self._end(done, now, acked=True)

    def ack_untracked(self, load: Load) -> None:
        """Nothing: without ackers nothing is replayed."""

    def _try_again(self, one: ReplayedLetter, failure: Failure, now: float) -> bool:
        """Let a letter wait for another try; False after the last try."""
        policy, key = self._policies[one.letter.spout], int(one.letter.id, 16)
        wait = policy.wait(failure, attempt=one.attempt, key=key)
        if wait is None:
            return False
        self._retries.add(replace(one, attempt=one.attempt + failure.counted), now + wait)
        return True

    def _bring_back(self, lost: Sequence[tuple[ReplayedLetter, Failure]], now: float) -> None:
        """Make letters again of replays that failed for good, all in one file."""
        items = [item for item, _ in lost]
        self._store.replace([self._again(item, failure) for item, failure in lost], _places(items))
        self._dead_letters.count(len(lost), 0)
        self.given_up += len(lost)
        for item, failure in lost:
            _logger.error("dead letter %s failed again: %s", item.letter.id, failure)
        self._end(items, now, acked=False)

    def _again(self, item: ReplayedLetter, failure: Failure) -> DeadLetter:
        attempts = item.attempt + failure.attempt - 1  # its batch may have been run again
        return replace(
            item.letter,
            run=self._dead_letters.run,
            failure=replace(failure, attempt=attempts),
            attempts=item.letter.attempts + attempts,
            last_time=self._dead_letters.clock.wall(),
            replays=item.letter.replays + 1,
        )

    def _end(self, items: Sequence[ReplayedLetter], now: float, *, acked: bool) -> None:
        ids = {item.letter.id for item in items}
        self._on_the_way -= ids
        for request in self._open:
            request.end(ids, acked=acked)
            self._acked[request.name] = request.acked
        while len(self._acked) > _MOST_REQUESTS:
            del self._acked[next(iter(self._acked))]
        self._close_requests(now)

    def _close_requests(self, now: float) -> None:
        self._open = [one for one in self._open if one.left or not one.forget(self._box, now)]


def _places(items: Iterable[ReplayedLetter]) -> list[str] | None:
    """The files that hold these letters; None, for any, if that is not known of one of them."""
    names: set[str] = set()
    for item in items:
        if item.places is None:
            return None
        names.update(item.places)
    return sorted(names)
