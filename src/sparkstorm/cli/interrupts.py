"""Interrupts: Ctrl-C once drains and stops, twice stops at once."""

import signal
import threading
from contextlib import ExitStack
from types import FrameType, TracebackType
from typing import final

__all__ = ["Interrupts"]


@final
class Interrupts:
    """A context in which the first SIGINT or SIGTERM sets ``asked``, the second ``at_once``.

    Only a third signal raises KeyboardInterrupt. An exception may be swallowed where it comes up
    (in a finalizer, for example); an event stays set. Enter the context on the main thread, after
    Spark has started, since Spark sets handlers of its own.
    """

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.at_once = threading.Event()
        self._restore = ExitStack()

    def __enter__(self) -> "Interrupts":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._restore.callback(signal.signal, number, signal.signal(number, self._handle))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore.close()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.at_once.is_set():
            raise KeyboardInterrupt
        (self.at_once if self.asked.is_set() else self.asked).set()
