"""What a worker process keeps between tasks: plans, bolts, state images."""

import atexit
import contextlib
import ctypes
import gc
from dataclasses import dataclass, field
from functools import lru_cache
from typing import final

import cloudpickle
from pyspark import TaskContext

from sparkstorm.errors import BatchError, InternalError
from sparkstorm.execution.batch import BatchInfo, Purpose
from sparkstorm.execution.level import Workshop
from sparkstorm.spark.own_classes import install
from sparkstorm.spark.rows import BATCH_PROPERTY

__all__ = ["PlanPayload", "attempt_name", "batch_info", "keep_memory", "settle_gc", "workshop"]

_WORKSHOPS: dict[str, Workshop] = {}
_FREEZES_LEFT = [8]
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 512 * 1024 * 1024


@final
@dataclass(frozen=True, slots=True)
class PlanPayload:
    """A plan and the user's own classes, pickled once by the driver; ``digest`` names them."""

    digest: str
    data: bytes = field(repr=False)


def workshop(payload: PlanPayload) -> Workshop:
    """Return this process's tasks of a topology; made at the first call."""
    known = _WORKSHOPS.get(payload.digest)
    if known is None:
        plan, classes = cloudpickle.loads(payload.data)
        install(classes)
        for old in _WORKSHOPS.values():
            old.cleanup()
        _WORKSHOPS.clear()
        known = _WORKSHOPS[payload.digest] = Workshop(plan)
        keep_memory()
    return known


def batch_info() -> BatchInfo:
    """Return what the driver says of the running batch.

    Raises:
        BatchError: the task is repeated in a probe. It has failed once, which is the answer;
            trying again would only cost more workers.
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
    """Name this run of a task among all that Spark makes of it."""
    context = TaskContext.get()
    return f"{context.taskAttemptId()}" if context is not None else ""


def settle_gc() -> None:
    """Take long-lived objects out of the cycle collector's sight.

    Spark's daemon collects after every task, which costs up to 90 ms in a process that has loaded
    pyarrow and pandas. Called at the end of the first tasks of a process, when imports, plans and
    bolts are there to stay.
    """
    if _FREEZES_LEFT[0]:
        _FREEZES_LEFT[0] -= 1
        gc.freeze()


def keep_memory() -> None:
    """Let the C library keep freed memory for the next batch instead of giving it back.

    Each batch needs the same large arrays again; getting them page by page from the kernel took a
    seventh of a worker's time. Where the C library is not glibc, nothing happens.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)


@lru_cache(maxsize=4)
def _parse(text: str) -> BatchInfo:
    return BatchInfo.from_json(text)


@atexit.register
def _cleanup() -> None:
    for known in _WORKSHOPS.values():
        known.cleanup()
