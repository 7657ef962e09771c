"""The handle of a running topology: wait, read statistics, pause, stop."""

import atexit
import threading
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from typing import Literal, final

from sparkstorm.batches.coordinator import Coordinator
from sparkstorm.errors import SparkLostError, SparkstormError
from sparkstorm.metrics import Statistics
from sparkstorm.planning.plan import Plan
from sparkstorm.sources.partitioned.pausing import pause, resume
from sparkstorm.spark.driver.source.server import PlanServer
from sparkstorm.spark.driver.spout_threads import SpoutThreads

__all__ = ["FirstFault", "Run"]

_LOOK_SECS = 0.02

_GOES_ON = (
    "Nothing that was acked is lost: a restart on the same checkpoint goes on, and what was not "
    "acked is processed again"
)


def _as_it_is(error: SparkstormError) -> None: ...


@final
class FirstFault:
    """Keeps the first error reported by a part of the run; later errors are consequences.

    Args:
        explain: may add notes to that error.
    """

    def __init__(self, explain: Callable[[SparkstormError], None] = _as_it_is) -> None:
        self._error: SparkstormError | None = None
        self._explain = explain

    def __bool__(self) -> bool:
        return self._error is not None

    def report(self, error: SparkstormError) -> None:
        """Keep the error, unless an earlier error is kept. Any thread may call this method."""
        if self._error is None:
            self._explain(error)
            self._error = error

    def check(self) -> None:
        """Raise the reported error, if any.

        Raises:
            SparkstormError: the error; its type tells whose fault it is.
        """
        if isinstance(self._error, SparkLostError):
            raise SparkLostError(f"{self._error}. {_GOES_ON}") from self._error
        if self._error is not None:
            raise self._error


@final
class Run:
    """A running topology, returned by :func:`submit`; also a context manager that stops the run.

    Attributes:
        plan: the running plan.
        letters_at: options for ``sparkstorm dead-letters`` to find the run's dead letters.
    """

    def __init__(
        self,
        plan: Plan,
        coordinator: Coordinator,
        server: PlanServer,
        spouts: SpoutThreads,
        fault: FirstFault,
        *,
        letters_at: str,
    ) -> None:
        self.plan = plan
        self.letters_at = letters_at
        self._coordinator = coordinator
        self._server = server
        self._spouts = spouts
        self._fault = fault
        self._parts = ExitStack()
        self._active = True
        self._ending = False
        self._stopped = threading.Event()
        self._stopping = threading.RLock()

    def own(self, parts: ExitStack) -> None:
        """Take over the running parts, for ``stop`` to close. Called once, by :func:`submit`."""
        self._parts = parts.pop_all()
        atexit.register(self._at_exit)

    def wait_until_drained(self, timeout: float | None = None) -> bool:
        """Wait until the spouts have nothing more and no message is pending.

        Returns False after ``timeout`` seconds, or if another thread stops the run before.

        Raises:
            SparkstormError: the run failed meanwhile.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._drained():
            self._check()
            if deadline is not None and time.monotonic() > deadline:
                return False
            if self._stopped.wait(_LOOK_SECS):  # by another thread, perhaps in the middle
                return self._drained()
        self._check()
        return True

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the run is stopped; returns False after ``timeout`` seconds.

        Raises:
            SparkstormError: the run failed.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._stopped.wait(_LOOK_SECS):
            self._check()
            if deadline is not None and time.monotonic() > deadline:
                return False
        return True

    def statistics(self) -> Statistics:
        """Return how the topology stands now."""
        return self._coordinator.statistics()

    @property
    def status(self) -> Literal["ACTIVE", "INACTIVE", "KILLED"]:
        """Storm's word for how the run is: ``KILLED`` from the begin of its end."""
        if self._ending:
            return "KILLED"
        return "ACTIVE" if self._active else "INACTIVE"

    def activate(self) -> None:
        """Let spouts give messages again."""
        self._set_active(True)

    def deactivate(self) -> None:
        """Let spouts give nothing new; pending messages are still processed, and tried again."""
        self._set_active(False)

    def pause(self, spout: str, partitions: Collection[str] = ()) -> None:
        """Read no new messages of a partitioned spout, or of some of its partitions.

        Planned messages go on, and messages that fail are tried again. A restart resumes all.

        Args:
            spout: the spout's name.
            partitions: as ``statistics().partitions[spout]`` names them; all if none is given.

        Raises:
            ConfigError: there is no such spout or partition, or the source cannot be paused.
        """
        pause(self._coordinator.partitioned.values(), self.statistics(), spout, partitions)

    def resume(self, spout: str, partitions: Collection[str] = ()) -> None:
        """Read messages of paused partitions again: of these, or of all."""
        resume(self._coordinator.partitioned.values(), self.statistics(), spout, partitions)

    def set_level(self, component: str, level: str) -> None:
        """Let a component log from a level of Python's ``logging`` on, from the next batch on.

        Args:
            component: a spout or a bolt.
            level: ``DEBUG``, ``INFO``, … as in ``logging``; ``NOTSET`` for the usual level, INFO.

        Raises:
            ConfigError: there is no such component, or no such level.
        """
        self._coordinator.inquiry.levels.set(component, level)

    def stop(self, drain: bool = True, timeout: float = 60.0) -> Statistics:
        """Stop the run; with ``drain``, finish pending messages first (up to ``timeout`` seconds).

        Returns the last statistics. A second call waits for the first.
        """
        if self._stopped.is_set():
            with self._stopping:  # Spark must not be stopped while another thread closes the parts
                return self.statistics()
        atexit.unregister(self._at_exit)
        self._ending = True
        self._coordinator.close_intake()
        self.deactivate()
        try:
            if drain and not self._fault:
                self.wait_until_drained(timeout)
        finally:
            self._server.stop()  # plan no further batch while the query is stopped
            with self._stopping:  # two threads may stop the run, the parts close once
                self._stopped.set()
                self._parts.close()
        return self.statistics()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.stop(drain=kind is None)

    def __repr__(self) -> str:
        return f"Run({self.plan.name}: {self._coordinator!r})"

    def _set_active(self, active: bool) -> None:
        self._active = active
        self._coordinator.set_active(active)
        self._spouts.set_active(active)

    def _drained(self) -> bool:
        # Spouts are asked on both sides: meanwhile the coordinator may post a verdict to one.
        return self._spouts.idle and self._coordinator.drained and self._spouts.idle

    def _check(self) -> None:
        self._fault.check()

    def _at_exit(self) -> None:
        self.stop(drain=False)
