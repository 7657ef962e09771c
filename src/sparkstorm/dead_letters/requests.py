"""Replay requests: the command line writes them, a running topology takes them up."""

import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import final

from sparkstorm.checkpoint.seal import unseal, write_sealed
from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.dead_letters.store import LetterStore
from sparkstorm.errors import CheckpointError

__all__ = ["ReplayRequest", "RequestBox"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """A request to emit letters again.

    Attributes:
        name: the name of the request's file.
        letters: for each letter's id, how often the letter had been replayed at the time of the
            request. A higher count in the store means: this very request has replayed the letter,
            and it failed again.
        rate: how many letters per second; None for no limit.
    """

    name: str
    letters: Mapping[str, int]
    rate: float | None = None


@final
class RequestBox:
    """The requests beside a store of letters; each is a file until all of it is done."""

    def __init__(self, store: LetterStore) -> None:
        self._files = store.files
        self._folder = f"{store.folder}/replay"

    def ask(
        self, letters: Iterable[DeadLetter], *, wall: float, rate: float | None = None
    ) -> ReplayRequest:
        """Write a request, durable on return, for the running or the next topology.

        Args:
            letters: the letters to replay.
            wall: the time, in seconds since 1970; requests are served in order of time.
            rate: how many letters per second; None for no limit.
        """
        name = f"{int(wall * 1000):014d}-{secrets.token_hex(4)}.json"
        request = ReplayRequest(
            name=name, letters={letter.id: letter.replays for letter in letters}, rate=rate
        )
        data = {"letters": dict(request.letters), "rate": rate}
        write_sealed(self._files, f"{self._folder}/{name}", json.dumps(data).encode())
        return request

    def names(self) -> list[str]:
        """Return the names of open requests, oldest first."""
        return [name for name in self._files.names(self._folder) if name.endswith(".json")]

    def read(self, name: str) -> ReplayRequest | None:
        """Return a request, or None if it is gone.

        Raises:
            CheckpointError: the file is unreadable.
        """
        data = self._files.read(f"{self._folder}/{name}")
        if data is None:
            return None
        try:
            values = json.loads(unseal(data))
            rate = None if values["rate"] is None else float(values["rate"])
            return ReplayRequest(name=name, letters=dict(values["letters"]), rate=rate)
        except (ValueError, TypeError, KeyError) as error:
            raise CheckpointError(
                f"the request {self._folder}/{name} is unreadable ({error}). Delete it and ask "
                f"again"
            ) from error

    def done(self, name: str) -> None:
        """Delete a request."""
        self._files.delete(f"{self._folder}/{name}")
