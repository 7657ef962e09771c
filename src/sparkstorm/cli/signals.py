"""Ctrl-C: once to drain and stop, twice to stop at once."""

import signal
import threading
from contextlib import ExitStack
from types import FrameType, TracebackType
from typing import final

__all__ = ["StopSignals"]


@final
class StopSignals:
    """While it lasts, the first SIGINT or SIGTERM sets ``asked``, the second ``at_once``.

    Only a third raises KeyboardInterrupt: an exception that comes up anywhere may be swallowed
    (in a finalizer, say), an event is not. To be entered after Spark has started, which sets
    handlers of its own, and on the main thread.
    """

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.at_once = threading.Event()
        self._restore = ExitStack()

    def __enter__(self) -> "StopSignals":
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
