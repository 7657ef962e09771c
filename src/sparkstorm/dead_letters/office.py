"""Where a letter goes: to a sink of the user's, and if there is none, or it fails, to the files."""

import importlib
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

from sparkstorm.clock import Clock
from sparkstorm.config import Config
from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.dead_letters.store import LetterStore
from sparkstorm.errors import CheckpointError, ConfigError
from sparkstorm.texts.credentials import untold
from sparkstorm.texts.logs import logger_of

__all__ = ["DeadLetterOffice", "Desk", "Sink", "find_sink"]

Sink: TypeAlias = Callable[[list[DeadLetter]], object]
"""Takes letters and keeps them, durably on return; if it raises, the files keep them instead."""

_logger = logger_of("sparkstorm.dead_letters")


@final
class DeadLetterOffice:
    """The dead letters of one run; thread-safe.

    Args:
        topology: the topology's name.
        store: the files.
        clock: where the time comes from.
        run: a name for this driver's life.
        where: options of ``sparkstorm dead-letters`` that lead to the files, for people.
    """

    def __init__(
        self, topology: str, store: LetterStore, clock: Clock, *, run: str = "", where: str = ""
    ) -> None:
        self.topology = topology
        self.store = store
        self.clock = clock
        self.run = run
        self.where = where
        self._lock = threading.Lock()
        self._written = 0
        self._sink_faults = 0

    @property
    def written(self) -> int:
        """How many letters were written, or handed to a sink."""
        return self._written

    @property
    def sink_faults(self) -> int:
        """How often a sink raised."""
        return self._sink_faults

    def desk(self, config: Config) -> "Desk":
        """Return what writes the letters of one spout, with that spout's settings.

        Raises:
            ConfigError: there is no such sink.
        """
        return Desk(self, find_sink(config.dead_letter_sink), keep=config.dead_letters == "files")

    def count(self, letters: int, faults: int) -> None:
        """Note what a desk has done."""
        with self._lock:
            self._written += letters
            self._sink_faults += faults


@final
class Desk:
    """Writes the letters of one spout; made by :meth:`DeadLetterOffice.desk`."""

    def __init__(self, office: DeadLetterOffice, sink: Sink | None, *, keep: bool) -> None:
        self.office = office
        self.keeps = keep
        self._sink = sink

    def post(self, letters: Sequence[DeadLetter]) -> None:
        """Keep these letters, durably on return; nothing at all if dead letters are off.

        Raises:
            CheckpointError: they cannot be kept, so their messages must not be forgotten.
        """
        if not self.keeps or not letters:
            return
        faults = 0
        if self._sink is None or (faults := self._hand_over(self._sink, letters)):
            self._write(letters)
        self.office.count(len(letters), faults)

    def _write(self, letters: Sequence[DeadLetter]) -> None:
        try:
            self.office.store.write(letters)
        except Exception as error:  # noqa: BLE001 - a store of any kind
            raise CheckpointError(
                f"dead letters of {letters[0].spout!r} could not be written: "
                f"{type(error).__name__}: {error}. Mend that, and start the topology again: with "
                f"the same checkpoint or source, their messages are not forgotten"
            ) from untold(error)

    def _hand_over(self, sink: Sink, letters: Sequence[DeadLetter]) -> int:
        try:
            sink(list(letters))
        except Exception as error:  # noqa: BLE001 - user code: the letters go to the files
            _logger.error(
                "the sink of dead letters failed (%s: %s); %s of %s are in the files instead",
                type(error).__name__,
                error,
                len(letters),
                letters[0].spout,
            )
            return 1
        return 0


def find_sink(named: Any) -> Sink | None:
    """Return the sink that a setting names: a callable, ``"module:function"``, or None.

    >>> find_sink("builtins:print") is print
    True

    Raises:
        ConfigError: there is no such callable.
    """
    if named is None:
        return None
    if callable(named):
        given: Sink = named
        return given
    module, _, name = str(named).partition(":")
    try:
        found: Any = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"dead_letter_sink {named!r} cannot be loaded: {error}. Write it as module:function, "
            f"of a module that the driver can import"
        ) from error
    if not callable(found):
        raise ConfigError(f"dead_letter_sink {named!r} is no function but {found!r}")
    sink: Sink = found
    return sink
