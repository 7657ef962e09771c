"""The outlet: carries news from the coordinator to the telemetry on a thread of its own."""

import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import final

from sparkstorm.batches.messages.observer import Observer
from sparkstorm.control.views import AttemptView
from sparkstorm.metrics import BatchTiming, TaskMetrics
from sparkstorm.sources.unfinished import Named
from sparkstorm.texts.logs import logger_of

__all__ = ["OPT_IN", "Outlet", "opened_outlet", "opted_in"]

OPT_IN = "OTEL_SEMCONV_STABILITY_OPT_IN"
"""The conventions for messaging are in development: so their own opt-in variable says."""

_MOST_WAITING = 10_000
"""News beyond these are dropped: a slow exporter must not fill the driver's memory."""

_CLOSE_SECS = 5.0

_logger = logger_of(__name__)


def opted_in(environ: Mapping[str, str]) -> bool:
    """Return whether the environment opts in to the conventions for messaging.

    >>> opted_in({"OTEL_SEMCONV_STABILITY_OPT_IN": "http, messaging/dup"}), opted_in({})
    (True, False)
    """
    chosen = {one.strip() for one in environ.get(OPT_IN, "").split(",")}
    return bool(chosen & {"messaging", "messaging/dup"})


@contextmanager
def opened_outlet(topology: str, observe: Callable[[Observer], None]) -> Iterator[None]:
    """Tell OpenTelemetry of a run during a ``with`` block, if the environment opts in.

    Without the library nothing is told: the variable may be meant for other programs.

    Args:
        topology: the topology's name.
        observe: called with the observer.
    """
    target = _messaging(topology) if opted_in(os.environ) else None
    if target is None:
        yield
        return
    outlet = Outlet(target)
    observe(outlet)
    try:
        yield
    finally:
        outlet.close()


def _messaging(topology: str) -> Observer | None:
    try:
        from sparkstorm.telemetry.otel import Messaging
    except ImportError as error:
        _logger.info("OpenTelemetry hears nothing of %s: %s", topology, error)
        return None
    return Messaging(topology)


@final
class Outlet:
    """An observer that hands everything to another one, on a thread.

    Args:
        target: may take its time.
    """

    def __init__(self, target: Observer) -> None:
        self._target = target
        self._news: queue.Queue[Callable[[], None] | None] = queue.Queue(_MOST_WAITING)
        self._dropped = 0
        self._has_failed = False
        self._thread = threading.Thread(target=self._run, name="sparkstorm-telemetry", daemon=True)
        self._thread.start()

    def batch_committed(self, timing: BatchTiming, messages: Mapping[str, int]) -> None:
        """Pass on a batch."""
        self._put(lambda: self._target.batch_committed(timing, messages))

    def messages_ended(self, spout: str, counts: TaskMetrics) -> None:
        """Pass on the counts of ended messages."""
        self._put(lambda: self._target.messages_ended(spout, counts))

    def attempt_ended(self, named: Named, attempt: AttemptView) -> None:
        """Pass on an attempt."""
        self._put(lambda: self._target.attempt_ended(named, attempt))

    def close(self) -> None:
        """Wait a little until all news are told."""
        try:
            self._news.put(None, timeout=_CLOSE_SECS)
        except queue.Full:
            self._dropped += self._news.qsize()
        self._thread.join(_CLOSE_SECS)
        if self._dropped:
            _logger.warning("OpenTelemetry was too slow: %d facts were dropped", self._dropped)

    def _put(self, tell: Callable[[], None]) -> None:
        try:
            self._news.put_nowait(tell)
        except queue.Full:
            self._dropped += 1

    def _run(self) -> None:
        while (tell := self._news.get()) is not None:
            try:
                tell()
            except Exception:  # the user's SDK, with the user's own processors
                if not self._has_failed:
                    _logger.exception("OpenTelemetry failed; further failures are not told")
                self._has_failed = True
