"""The queue of a run's dead letters: to the user's sink, or else to the files."""

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

__all__ = ["DeadLetterQueue", "QueueWriter", "Sink", "find_sink"]

Sink: TypeAlias = Callable[[list[DeadLetter]], object]
"""Takes letters and keeps them, durably on return; if it raises, the files keep them instead."""

_logger = logger_of("sparkstorm.dead_letters")


@final
class DeadLetterQueue:
    """The dead letters of one run; thread-safe.

    Args:
        topology: the topology's name.
        store: the files.
        clock: the source of time.
        run: the id of this run.
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

    def writer(self, config: Config) -> "QueueWriter":
        """Return the writer of one spout's letters, by the spout's settings.

        Raises:
            ConfigError: there is no such sink.
        """
        return QueueWriter(
            self, find_sink(config.dead_letter_sink), keep=config.dead_letters == "files"
        )

    def count(self, letters: int, faults: int) -> None:
        """Add to the counts of written letters and of faults of sinks."""
        with self._lock:
            self._written += letters
            self._sink_faults += faults


@final
class QueueWriter:
    """The writer of one spout's letters; made by :meth:`DeadLetterQueue.writer`."""

    def __init__(self, dead_letters: DeadLetterQueue, sink: Sink | None, *, keep: bool) -> None:
        self.dead_letters = dead_letters
        self.keeps = keep
        self._sink = sink

    def write(self, letters: Sequence[DeadLetter]) -> None:
        """Keep letters, durably on return; do nothing if dead letters are off.

        Raises:
            CheckpointError: the letters cannot be kept, so their messages must not be forgotten.
        """
        if not self.keeps or not letters:
            return
        # A failing sink must not lose letters: then the files take them.
        faults = 0
        if self._sink is None or (faults := self._hand_over(self._sink, letters)):
            self._write(letters)
        self.dead_letters.count(len(letters), faults)

    def _write(self, letters: Sequence[DeadLetter]) -> None:
        try:
            self.dead_letters.store.write(letters)
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
    """Return the sink of a setting: a callable, ``"module:function"``, or None.

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
