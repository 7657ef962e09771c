"""The inquiry: answers people's questions on messages, while batches go on."""

import threading
from collections.abc import Collection
from typing import final

from sparkstorm.batches.messages.chronicle import Chronicle
from sparkstorm.batches.messages.copying import Copier
from sparkstorm.batches.messages.kept import Kept
from sparkstorm.batches.messages.levels import Levels
from sparkstorm.batches.messages.listing import Listing, Wanted
from sparkstorm.clock import Clock
from sparkstorm.control.views import MessagesView
from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.sources.sources import Sources
from sparkstorm.sources.unfinished import message_id, message_name

__all__ = ["Inquiry"]


@final
class Inquiry:
    """Tells people of messages; thread-safe, by the lock that the coordinator takes as well.

    Args:
        sources: have the messages.
        chronicle: keeps the attempts at some of them.
        listing: lists the unfinished.
        levels: from which level on components log.
        clock: the time.
        copier: makes letters of unfinished messages.
    """

    def __init__(
        self,
        sources: Sources,
        chronicle: Chronicle,
        listing: Listing,
        levels: Levels,
        clock: Clock,
        copier: Copier,
    ) -> None:
        self.lock = threading.RLock()
        self._sources = sources
        self.chronicle = chronicle
        self._listing = listing
        self.levels = levels
        self._clock = clock
        self._copier = copier

    def messages(self, wanted: Wanted) -> MessagesView:
        """Return the unfinished messages that pass a filter, the oldest first."""
        with self.lock:
            return self._listing.messages(wanted, self._clock.monotonic(), self._clock.wall())

    def kept(self, message: str) -> Kept | None:
        """Return what is kept of a message, by its id or its name."""
        with self.lock:
            return self.chronicle.find(message)

    def copy(self, message: str) -> DeadLetter | None:
        """Return an unfinished message as a letter, by its id or name; None if there is none.

        The payload may be read from the source, which takes a while.
        """
        with self.lock:
            found = self._listing.find(message)
            if found is None:
                return None
            group, place = found
            read = group.content(place)
            name = message_name(group.name(place))
            kept = self.chronicle.get(message_id(group.owner, name))
        failure = None if kept is None else kept.failure
        return self._copier.copy(group, place, read(), failure)

    def hurry(self, ids: Collection[str]) -> int:
        """Let messages that wait for a retry be tried in the next batch; return how many."""
        with self.lock:
            return self._sources.hurry(ids, self._clock.monotonic())

    def acked_letters(self, request: str) -> int:
        """Return how many dead letters of a request to replay were acked."""
        with self.lock:
            return self._sources.replays.acked(request)

    def follow(self, text: str, spout: str | None = None) -> None:
        """Keep the trees of messages whose name contains a text, of one spout or of all."""
        with self.lock:
            self.chronicle.follow(text, spout)

    def unfollow(self, text: str) -> None:
        """Follow such messages no longer."""
        with self.lock:
            self.chronicle.unfollow(text)

    def followed(self) -> list[str]:
        """Return the texts that are followed."""
        with self.lock:
            return self.chronicle.followed
