"""Interrupts: while Spark starts a signal ends the command; later one drains, two stop at once."""

import os
import signal
import threading
from contextlib import ExitStack
from types import FrameType, TracebackType
from typing import final

__all__ = ["Interrupts"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Ctrl-C, and the wish of a service manager."""


@final
class Interrupts:
    """A context for signals, entered on the main thread before Spark starts.

    Until :meth:`drain_first` a signal raises KeyboardInterrupt. From then on the first signal sets
    ``asked``, the second ``at_once``, and only a third raises. An exception may be swallowed where
    it comes up (in a finalizer, for example); an event stays set. A process that was forked here,
    Spark's JVM to be, ends without a word. Under ``nohup`` the end of the terminal stays ignored.
    """

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.at_once = threading.Event()
        self._drains = False
        self._process = os.getpid()
        self._restore = ExitStack()
        self._numbers = list(_SIGNALS)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            self._numbers.append(signal.SIGHUP)  # the end of the terminal

    def __enter__(self) -> "Interrupts":
        for number in self._numbers:
            self._restore.callback(signal.signal, number, signal.signal(number, self._handle))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore.close()

    def drain_first(self) -> None:
        """Note that a topology runs, and take the signals back from Spark, which took SIGINT."""
        self._drains = True
        for number in self._numbers:
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a fork that has not yet become another program
            os._exit(128 + number)
        if not self._drains:
            self.asked.set()
            raise KeyboardInterrupt
        if self.at_once.is_set():
            raise KeyboardInterrupt
        (self.at_once if self.asked.is_set() else self.asked).set()
