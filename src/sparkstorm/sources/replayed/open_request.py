"""Open requests for replays: a request reads its letters, and bears what happens to the files."""

import math
from collections.abc import Iterator
from typing import TypeAlias, final

from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.dead_letters.requests import ReplayRequest, RequestBox
from sparkstorm.dead_letters.store import LetterStore, Places
from sparkstorm.errors import CheckpointError
from sparkstorm.texts.logs import logger_of

__all__ = ["OpenRequest"]

_FIRST_PAUSE_SECS = 1.0
_LONGEST_PAUSE_SECS = 60.0
"""Each look reads all letters, and no batch is planned meanwhile: looks in vain become rare."""

_Letters: TypeAlias = Iterator[tuple[DeadLetter, Places]]

_logger = logger_of("sparkstorm.dead_letters")


@final
class OpenRequest:
    """The letters of a request that are not yet emitted, and the ids that have not ended.

    Neither damaged letters nor errors of the files raise. People are told once, nothing counts as
    done, and a later look begins anew.
    """

    def __init__(self, request: ReplayRequest, store: LetterStore, now: float) -> None:
        self.left = set(request.letters)
        self.emitted = 0
        self.acked = 0
        self._request = request
        self._store = store
        self._letters = self._wanted()
        self._started = now
        self._waits_until = -math.inf
        self._pause = 0.0
        self._passes = True
        self._told = ""

    @property
    def name(self) -> str:
        """The name of the request's file."""
        return self._request.name

    @property
    def busy(self) -> bool:
        """Whether a run should wait for the request before its end: not long for files."""
        return not self._pause or (self._passes and self._pause < _LONGEST_PAUSE_SECS)

    def due(self, now: float) -> int:
        """Return how many letters the rate allows by now; of a pause one second is made up for."""
        rate = self._request.rate
        if rate is None:
            return len(self.left)
        burst = max(rate, 1.0)
        allowed = 1 + (now - self._started) * rate - self.emitted
        if allowed > burst:
            self._started += (allowed - burst) / rate
        return int(min(allowed, burst))

    def next(self, on_the_way: set[str], now: float) -> tuple[DeadLetter, Places] | None:
        """Return the next letter that is not on its way; None if there is none, or none for now."""
        if not self.left or now < self._waits_until:
            return None
        try:
            found = next((one for one in self._letters if one[0].id not in on_the_way), None)
        except Exception as error:  # noqa: BLE001 - of any file system: the batch can do without
            self._letters = self._wanted()  # one that raised would look exhausted
            self._wait("dead letters cannot be replayed, their request waits", error, now)
            return None
        self._pause, self._told = 0.0, ""
        if found is None:
            # what was discarded, or is on its way by another request, is not waited for
            self.left &= on_the_way
        return found

    def end(self, ids: set[str], *, acked: bool) -> None:
        """Note letters that have ended, all acked or all given up again."""
        self.acked += len(self.left & ids) if acked else 0
        if self.left and self.left <= ids:
            self._waits_until = -math.inf  # there is nothing more to read
        self.left -= ids

    def forget(self, box: RequestBox, now: float) -> bool:
        """Delete the request after its last letter; return False if that has to wait."""
        if now < self._waits_until:
            return False
        try:
            box.done(self._request.name)
        except Exception as error:  # noqa: BLE001 - as above
            self._wait("a request whose dead letters have ended cannot be deleted", error, now)
            return False
        return True

    def _wanted(self) -> _Letters:
        """Yield the letters of a request, without letters that it has already brought back."""
        asked = self._request.letters
        for letter, places in self._store.placed(self.left):
            if letter.replays <= asked[letter.id]:
                yield letter, places

    def _wait(self, what: str, error: Exception, now: float) -> None:
        self._pause = min(max(2 * self._pause, _FIRST_PAUSE_SECS), _LONGEST_PAUSE_SECS)
        self._waits_until = now + self._pause
        self._passes = not isinstance(error, CheckpointError)  # that one people have to mend
        text = f"{type(error).__name__}: {error}" if self._passes else str(error)
        if self._told != text:
            self._told = text
            _logger.error("%s: %s", what, text)
