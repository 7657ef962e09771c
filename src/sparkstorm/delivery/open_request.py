"""A request for replays that is not done: reads its letters, and bears what files do meanwhile."""

import logging
import math
from collections.abc import Iterator
from typing import TypeAlias, final

from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.dead_letters.requests import ReplayRequest
from sparkstorm.dead_letters.store import LetterStore, Places
from sparkstorm.errors import CheckpointError

__all__ = ["OpenRequest"]

_FIRST_PAUSE_SECS = 1.0
_LONGEST_PAUSE_SECS = 60.0
"""Each look reads all letters, while no batch is planned: so fewer and fewer if it is in vain."""

_Letters: TypeAlias = Iterator[tuple[DeadLetter, Places]]

_logger = logging.getLogger("sparkstorm.dead_letters")


@final
class OpenRequest:
    """The letters of a request that are not yet emitted, and the ids that have not ended.

    Damage among the letters does not come out of it: people are told once, nothing is taken for
    done, and later all is looked at anew.
    """

    def __init__(self, request: ReplayRequest, store: LetterStore, now: float) -> None:
        self.left = set(request.letters)
        self.name = request.name
        self.emitted = 0
        self._request = request
        self._store = store
        self._letters = self._wanted()
        self._started = now
        self._waits_until = -math.inf
        self._pause = 0.0
        self._told = ""

    @property
    def busy(self) -> bool:
        """Whether the end of a run should wait for it; not if it waits for people."""
        return not self._pause

    def due(self, now: float) -> int:
        """How many letters the rate allows by now; after a pause it makes up for one second."""
        rate = self._request.rate
        if rate is None:
            return len(self.left)
        burst = max(rate, 1.0)
        allowed = 1 + (now - self._started) * rate - self.emitted
        if allowed > burst:
            self._started += (allowed - burst) / rate
        return int(min(allowed, burst))

    def next(self, on_the_way: set[str], now: float) -> tuple[DeadLetter, Places] | None:
        """The next letter that is not on its way; None if there is none, or none for now."""
        if now < self._waits_until:
            return None
        try:
            found = next((one for one in self._letters if one[0].id not in on_the_way), None)
        except CheckpointError as error:  # what people may mend while the topology goes on
            self._letters = self._wanted()  # one that raised would look exhausted
            self._wait(error, now)
            return None
        self._pause = 0.0
        if found is None:
            # what was discarded, or is on its way by another request, is not waited for
            self.left &= on_the_way
        return found

    def end(self, ids: set[str]) -> None:
        """Note letters that have ended."""
        self.left -= ids

    def _wanted(self) -> _Letters:
        """The letters of a request, but for those that it has already brought back."""
        asked = self._request.letters
        for letter, places in self._store.placed(self.left):
            if letter.replays <= asked[letter.id]:
                yield letter, places

    def _wait(self, error: Exception, now: float) -> None:
        self._pause = min(max(2 * self._pause, _FIRST_PAUSE_SECS), _LONGEST_PAUSE_SECS)
        self._waits_until = now + self._pause
        if self._told != (text := str(error)):
            self._told = text
            _logger.error("dead letters cannot be replayed, their request waits: %s", text)
