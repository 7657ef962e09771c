"""Waiting bolts: several ``execute`` calls of a task at a time, recorded in the input's order."""

import asyncio
import atexit
import contextvars
import inspect
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from time import perf_counter
from typing import Any, final

from sparkstorm.components.bolt import AnyBolt, Bolt
from sparkstorm.texts.user_errors import is_of_call, refuse_result
from sparkstorm.tuples import Tuple

__all__ = ["Recording", "is_async", "run_concurrently", "running"]

_Take = Callable[[int, "Recording"], None]

_LOOPS = threading.local()


@final
class Recording:
    """A collector that records its calls, for the real collector later.

    A recording also has the error that ended ``execute``. The calls before the error are replayed
    all the same, since a :class:`Bolt` keeps its emits.

    Attributes:
        index: the position of the executed tuple.
        secs: how long ``execute`` took.
    """

    __slots__ = ("_calls", "_error", "index", "secs")

    def __init__(self, index: int) -> None:
        self.index = index
        self.secs = 0.0
        self._calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self._error: BaseException | None = None

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("_"):
            raise AttributeError(name)

        def record(*args: Any, **kwargs: Any) -> None:
            # The bolt may change a list after its emit, so the recording keeps a copy.
            copied = tuple(tuple(arg) if isinstance(arg, list) else arg for arg in args)
            self._calls.append((name, copied, kwargs))

        return record

    def replay(self, collector: Any) -> None:
        """Make the calls on the real collector, then raise ``execute``'s error."""
        for name, args, kwargs in self._calls:
            getattr(collector, name)(*args, **kwargs)
        if self._error is not None:
            raise self._error


_CURRENT: contextvars.ContextVar[Recording] = contextvars.ContextVar("sparkstorm_recording")


def running() -> int | None:
    """Return the position of the tuple that this thread or coroutine executes; None for none."""
    recording = _CURRENT.get(None)
    return None if recording is None else recording.index


@final
class _CurrentCollector:
    """``self.collector`` of a concurrent bolt: the recording of the running tuple."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_CURRENT.get(), name)

    def __reduce__(self) -> str:
        raise TypeError("a collector cannot be pickled")


def run_concurrently(bolt: AnyBolt, tuples: Iterable[Tuple], limit: int, take: _Take) -> None:
    """Execute up to ``limit`` tuples at a time; hand each recording to ``take`` in order.

    Tuples run in threads, or as coroutines on an event loop if ``execute`` is ``async def``.
    """
    real = getattr(bolt, "collector", None)
    if isinstance(bolt, Bolt):
        bolt.collector = _CurrentCollector()
    try:
        if is_async(bolt):
            _event_loop().run(_run_coroutines(bolt, tuples, limit, take))
        else:
            _run_threads(bolt, tuples, limit, take)
    finally:
        if isinstance(bolt, Bolt) and real is not None:
            bolt.collector = real


def _event_loop() -> asyncio.Runner:
    """Return this thread's event loop, the same for all batches and bolts.

    A connection pool that tasks share, say, belongs to the loop that made the pool.
    """
    found: asyncio.Runner | None = getattr(_LOOPS, "runner", None)
    if found is None:
        found = _LOOPS.runner = asyncio.Runner()
        atexit.register(found.close)
    return found


def is_async(bolt: AnyBolt) -> bool:
    """Whether the bolt's ``execute`` is a coroutine function."""
    return inspect.iscoroutinefunction(bolt.execute)  # type: ignore[attr-defined]


def _call(bolt: Any, tup: Tuple, recording: Recording) -> Any:
    _CURRENT.set(recording)
    return bolt.execute(tup) if isinstance(bolt, Bolt) else bolt.execute(tup, recording)


def _run_threads(bolt: AnyBolt, tuples: Iterable[Tuple], limit: int, take: _Take) -> None:
    with ThreadPoolExecutor(limit, thread_name_prefix="sparkstorm-bolt") as pool:
        waiting: deque[tuple[int, Future[Recording]]] = deque()
        for tup in tuples:
            # Results are taken in the order of the input, so a repeated run emits the same.
            waiting.append((tup._index, pool.submit(_call_recorded, bolt, tup)))  # noqa: SLF001
            # Twice the limit keeps all threads busy while the first in order is slow.
            if len(waiting) >= 2 * limit:
                _take_first(waiting, take)
        while waiting:
            _take_first(waiting, take)


def _call_recorded(bolt: Any, tup: Tuple) -> Recording:
    recording, started = Recording(tup._index), perf_counter()  # noqa: SLF001
    try:
        refuse_result(_call(bolt, tup, recording))
    except BaseException as error:  # replay raises the error again
        if not is_of_call(error):
            raise
        recording._error = error  # noqa: SLF001
    recording.secs = perf_counter() - started
    return recording


def _take_first(waiting: deque[tuple[int, Future[Recording]]], take: _Take) -> None:
    index, future = waiting.popleft()
    take(index, future.result())


async def _run_coroutines(bolt: Any, tuples: Iterable[Tuple], limit: int, take: _Take) -> None:
    source = iter(tuples)
    # A window bounds the recordings in memory; a wide one keeps a slow call from stopping the rest.
    while window := list(islice(source, limit * 8)):
        gate = asyncio.Semaphore(limit)
        records = await asyncio.gather(*(_await_one(bolt, tup, gate) for tup in window))
        for tup, recording in zip(window, records, strict=True):
            take(tup._index, recording)  # noqa: SLF001


async def _await_one(bolt: Any, tup: Tuple, gate: asyncio.Semaphore) -> Recording:
    async with gate:
        recording, started = Recording(tup._index), perf_counter()  # noqa: SLF001
        try:
            refuse_result(await _call(bolt, tup, recording))
        except BaseException as error:  # as above
            if not is_of_call(error):
                raise
            recording._error = error  # noqa: SLF001
        recording.secs = perf_counter() - started
        return recording
