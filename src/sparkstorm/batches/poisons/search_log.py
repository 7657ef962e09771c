"""The search log: tells people how the search for poisons of a batch goes on."""

from typing import final

from sparkstorm.batches.poisons.poison_search import PoisonSearch
from sparkstorm.clock import Clock
from sparkstorm.packets.batch_info import Purpose
from sparkstorm.texts.logs import logger_of

__all__ = ["SearchLog"]

_logger = logger_of(__name__)


@final
class SearchLog:
    """Logs one search from its first failure on.

    Args:
        number: the batch's number.
        messages: how many messages the batch has.
        error: why its job failed.
        clock: the time.
    """

    def __init__(self, number: int, messages: int, error: str, clock: Clock) -> None:
        self._number = number
        self._messages = messages
        self._clock = clock
        self._started = clock.monotonic()
        self._actions = 0
        _logger.warning("batch %s: the job of its %s messages failed: %s", number, messages, error)

    def next(self, search: PoisonSearch) -> None:
        """Say what is run next."""
        self._actions += 1
        action, found = search.action, len(search.poisons)
        if action.purpose is Purpose.BATCH:
            left = self._messages - action.messages
            _logger.warning(
                "batch %s: run again with %s messages, %s left out (%s found at fault)",
                self._number,
                action.messages,
                left,
                found,
            )
        else:
            _logger.info(
                "batch %s: %s %s of %s messages; the fault is in one of %s, %s found (action %s)",
                self._number,
                action.purpose,
                action.messages,
                self._messages,
                search.suspects,
                found,
                self._actions,
            )

    def done(self, search: PoisonSearch) -> None:
        """Say that the batch has passed without the messages at fault."""
        _logger.warning(
            "batch %s: done with %s of %s messages after %s more actions in %.1f s; %s at fault, "
            "which will be given up",
            self._number,
            search.action.messages,
            self._messages,
            self._actions,
            self._clock.monotonic() - self._started,
            len(search.poisons),
        )
