"""Letters: the dead letters of a running topology, by kind, and the orders to replay them."""

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

from sparkstorm.clock import Clock
from sparkstorm.control.views import GroupView, LettersView, LetterView, ReplayView
from sparkstorm.dead_letters.letter import DeadLetter, letter_id
from sparkstorm.dead_letters.requests import RequestBox
from sparkstorm.dead_letters.selection import by_id
from sparkstorm.dead_letters.store import LetterStore
from sparkstorm.dead_letters.values import from_json, to_json
from sparkstorm.errors import ConfigError
from sparkstorm.sources.unfinished import message_name
from sparkstorm.texts.user_errors import users_line

__all__ = ["Letters", "group_of", "letter_view"]

_MOST_REPLAYS = 100
_TRACE_CHARS = 20_000

_GOOD_FOR = 10.0
"""How many times as long as it took a look at the files is good for."""


@final
@dataclass(slots=True)
class _Asked:
    """A request to replay: its letters, and how often each had been replayed before."""

    name: str
    letters: dict[str, int] = field(default_factory=dict)


@final
class Letters:
    """The dead letters of one topology, for people; thread-safe.

    Args:
        topology: the topology's name.
        store: the letters' files.
        clock: the time.
        acked: returns how many letters of a request were acked, by the request's name.
    """

    def __init__(
        self, topology: str, store: LetterStore, clock: Clock, acked: Callable[[str], int]
    ) -> None:
        self._topology = topology
        self._store = store
        self._box = RequestBox(store)
        self._clock = clock
        self._acked = acked
        self._asked: list[_Asked] = []
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._seen: list[DeadLetter] | None = None
        self._good_until = 0.0

    def groups(self) -> list[GroupView]:
        """Return the letters by kind, the largest group first."""
        groups: dict[str, list[DeadLetter]] = {}
        for letter in self._all():
            groups.setdefault(group_of(letter), []).append(letter)
        views = [_group_view(name, letters) for name, letters in groups.items()]
        return sorted(views, key=lambda view: -view.count)

    def letters(self, group: str | None, limit: int, offset: int) -> LettersView:
        """Return letters, the newest first."""
        found = [one for one in self._all() if group in (None, group_of(one))]
        found.sort(key=lambda letter: letter.last_time, reverse=True)
        part = found[max(0, offset) : max(0, offset) + max(0, limit)]
        return LettersView(total=len(found), letters=[letter_view(one) for one in part])

    def letter(self, letter: str) -> LetterView | None:
        """Return a letter by its id; None if there is none."""
        found = next(iter(self._chosen([letter], None, known_only=True)), None)
        return None if found is None else letter_view(found)

    def replay(
        self, letters: Sequence[str], group: str | None, values: dict[str, Any] | None
    ) -> str:
        """Ask for letters to be emitted again; return the request's name.

        Raises:
            ConfigError: there is no such letter, none can be replayed, or new values do not fit.
        """
        chosen = self._chosen(letters, group)
        if values is not None:
            chosen = [self._edited(chosen, values)]
        able = [one for one in chosen if one.replayable]
        if not able:
            raise ConfigError("no letter was chosen that can be replayed")
        request = self._box.ask(able, wall=self._clock.wall())
        with self._lock:
            self._asked.append(_Asked(request.name, dict(request.letters)))
            del self._asked[:-_MOST_REPLAYS]
        return request.name

    def replays(self) -> list[ReplayView]:
        """Return the requests of this run, the newest first."""
        with self._lock:
            asked = list(reversed(self._asked))
        if not asked:
            return []
        opened = set(self._box.names())
        ids = {letter for one in asked for letter in one.letters}
        left = {letter.id: letter for letter in self._store.letters(ids)}
        # Counted after the look at the files: a letter goes from there before it is counted.
        return [
            _replay_view(one, left, self._acked(one.name), is_open=one.name in opened)
            for one in asked
        ]

    def discard(self, letters: Sequence[str], group: str | None) -> int:
        """Remove letters for good; return how many."""
        chosen = self._chosen(letters, group)
        self._store.remove([one.id for one in chosen])
        self._look_again()
        return len(chosen)

    def _all(self) -> list[DeadLetter]:
        """Return all letters, perhaps as they were a moment ago.

        A page asks every second, and reading a hundred thousand letters takes longer: so a look
        is good for ten times as long as it took.
        """
        with self._looking:
            now = time.monotonic()
            if self._seen is None or now >= self._good_until:
                letters = self._store.letters()
                self._seen = [one for one in letters if one.topology == self._topology]
                self._good_until = now + _GOOD_FOR * (time.monotonic() - now)
            return self._seen

    def _look_again(self) -> None:
        with self._looking:
            self._seen = None

    def _chosen(
        self, ids: Sequence[str], group: str | None, *, known_only: bool = False
    ) -> list[DeadLetter]:
        self._look_again()
        letters = self._all()
        if group is not None:
            return [one for one in letters if group_of(one) == group]
        if known_only:
            return [one for one in letters if one.id in ids]
        return by_id(letters, ids)

    def _edited(self, chosen: Sequence[DeadLetter], values: dict[str, Any]) -> DeadLetter:
        """Write a letter with new values beside the original; return it."""
        if len(chosen) != 1:
            raise ConfigError(f"new values are for one letter, not for {len(chosen)}")
        original = chosen[0]
        if set(values) != set(original.fields):
            raise ConfigError(
                f"the new values need the fields {', '.join(original.fields)}, and have "
                f"{', '.join(values) or 'none'}"
            )
        try:
            row = tuple(from_json(values[name]) for name in original.fields)
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigError(f"the new values cannot be read: {error}") from error
        edited = replace(
            original,
            id=letter_id(
                topology=original.topology,
                spout=original.spout,
                stream=original.stream,
                msg_id=original.msg_id,
                values=row,
            ),
            values=row,
            source=None,
            note=f"edited from letter {original.id}",
        )
        self._store.write([edited])
        self._look_again()
        return edited


def group_of(letter: DeadLetter) -> str:
    """Return the kind of a letter: letters of one cause have the same."""
    failure = letter.failure
    frame = users_line(failure.traceback)
    cause = (failure.component, failure.reason.value, _kind_of(letter), frame)
    return hashlib.blake2b(repr(cause).encode(), digest_size=6).hexdigest()


def letter_view(letter: DeadLetter) -> LetterView:
    """Return a letter for people."""
    failure, payload = letter.failure, letter.payload
    return LetterView(
        id=letter.id,
        group=group_of(letter),
        spout=letter.spout,
        name=message_name(letter.msg_id),
        stream=letter.stream,
        values=None if payload is None else {name: to_json(one) for name, one in payload.items()},
        reason=failure.reason.value,
        component=failure.component,
        task=failure.task,
        why=failure.message,
        frame=users_line(failure.traceback),
        trace=failure.traceback[-_TRACE_CHARS:],
        attempts=letter.attempts,
        first_time=letter.first_time,
        last_time=letter.last_time,
        replays=letter.replays,
        replayable=letter.replayable,
        note=letter.note,
    )


def _kind_of(letter: DeadLetter) -> str:
    """Return the class of the error, or the reason where no error was raised."""
    failure = letter.failure
    return failure.message.partition(":")[0] if failure.traceback else failure.reason.value


def _group_view(name: str, letters: Sequence[DeadLetter]) -> GroupView:
    newest = max(letters, key=lambda letter: letter.last_time)
    return GroupView(
        group=name,
        component=newest.failure.component,
        reason=newest.failure.reason.value,
        kind=_kind_of(newest),
        frame=users_line(newest.failure.traceback),
        count=len(letters),
        example=letter_view(newest),
    )


def _replay_view(
    asked: _Asked, left: dict[str, DeadLetter], acked: int, *, is_open: bool
) -> ReplayView:
    mine = {one: left[one] for one in asked.letters if one in left}
    failed = {
        one: str(letter.failure)
        for one, letter in mine.items()
        if letter.replays > asked.letters[one] or not is_open
    }
    return ReplayView(
        name=asked.name,
        asked=len(asked.letters),
        acked=acked,
        gone=max(0, len(asked.letters) - len(mine) - acked),
        pending=len(mine) - len(failed),
        left=failed,
    )
