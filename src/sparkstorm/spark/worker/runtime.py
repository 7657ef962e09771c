"""A worker process's memory between Spark's tasks: plans, bolts, state images."""

import atexit
import contextlib
import ctypes
import gc
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, final

import cloudpickle
from pyspark import TaskContext

from sparkstorm.clock import Clock, SystemClock
from sparkstorm.errors import BatchError, EnvironmentFault, InternalError
from sparkstorm.packets.batch_info import BatchInfo, Purpose
from sparkstorm.processes.owner import owner_of_worker
from sparkstorm.spark.own_classes import install
from sparkstorm.spark.rows import BATCH_PROPERTY
from sparkstorm.tasks.worker import Worker
from sparkstorm.texts.user_errors import message_of

__all__ = [
    "PlanPayload",
    "Workers",
    "attempt_name",
    "batch_info",
    "keep_memory",
    "settle_gc",
    "worker_of",
]

_IDLE_SECS = 60.0
"""As long as Spark keeps idle workers."""

_FREEZES_LEFT = [8]
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 512 * 1024 * 1024


@final
@dataclass(frozen=True, slots=True)
class PlanPayload:
    """A plan and the user's own classes, pickled once by the driver; ``digest`` names them."""

    digest: str
    data: bytes = field(repr=False)


@final
class Workers:
    """A process's tasks of all topologies that it works for; several may run on one session.

    Nobody tells a worker that a run has ended. So a topology that has had no work for a minute is
    told to clean up, and dropped.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, tuple[Worker, list[type]]] = {}
        self._used: dict[str, float] = {}
        self._last = ""

    def of(self, payload: PlanPayload) -> Worker:
        """Return the tasks of a topology; made at the first call."""
        digest = payload.digest
        if digest not in self._known:
            plan, classes = _unpickled(payload)
            self._known[digest], self._last = (Worker(plan, owner_of_worker()), classes), ""
        self._used[digest] = self._clock.monotonic()
        self._drop_idle()
        worker, classes = self._known[digest]
        if digest != self._last:  # another topology may have classes of the same names
            install(classes)
            self._last = digest
        return worker

    def close(self) -> None:
        """Tell all bolts that the process ends."""
        for worker, _ in self._known.values():
            worker.cleanup()

    def __iter__(self) -> Iterator[Worker]:
        return (worker for worker, _ in self._known.values())

    def _drop_idle(self) -> None:
        now = self._clock.monotonic()
        idle = [digest for digest, used in self._used.items() if now - used > _IDLE_SECS]
        for digest in idle:
            del self._used[digest]
            worker, _ = self._known.pop(digest)
            worker.cleanup()


def _unpickled(payload: PlanPayload) -> Any:
    """Return a plan and the user's own classes.

    Raises:
        EnvironmentFault: this host lacks a module, or a name of it.
    """
    try:
        return cloudpickle.loads(payload.data)
    except (ImportError, AttributeError) as error:
        raise EnvironmentFault(
            f"a Python worker on {platform.node()} cannot load the topology: {message_of(error)}. "
            f"Install what is missing for its Python ({sys.executable}), or send it with --py-files"
        ) from error


_WORKERS = Workers(SystemClock())


def worker_of(payload: PlanPayload) -> Worker:
    """Return this process's tasks of a topology."""
    keep_memory()
    return _WORKERS.of(payload)


def batch_info() -> BatchInfo:
    """Return the driver's description of the running batch.

    Raises:
        BatchError: Spark repeats a task of a probe. The first failure answers the probe already;
            another try would only cost more workers.
    """
    context = TaskContext.get()
    text = context.getLocalProperty(BATCH_PROPERTY) if context is not None else None
    if context is None or text is None:
        raise InternalError("a task runs without its batch: the local property is missing")
    info = _parse(text)
    if info.purpose is Purpose.PROBE and context.attemptNumber():
        raise BatchError(f"a probe of batch {info.number} has failed and is not tried again")
    return info


def attempt_name() -> str:
    """Return a name for this run of a Spark task; no other run has the same."""
    context = TaskContext.get()
    return f"{context.taskAttemptId()}" if context is not None else ""


def settle_gc() -> None:
    """Take long-lived objects out of the cycle collector's sight.

    Spark's daemon collects after every task, which costs up to 90 ms in a process that has loaded
    pyarrow and pandas. Called at the end of a process's first tasks, when imports, plans and
    bolts are there to stay.
    """
    if _FREEZES_LEFT[0]:
        _FREEZES_LEFT[0] -= 1
        gc.freeze()


@cache
def keep_memory() -> None:
    """Let the C library keep freed memory for the next batch.

    Each batch needs equally large arrays. Getting them page by page from the kernel again took a
    seventh of a worker's time. Where the C library is not glibc, nothing happens.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)


@lru_cache(maxsize=4)
def _parse(text: str) -> BatchInfo:
    return BatchInfo.from_json(text)


atexit.register(_WORKERS.close)
