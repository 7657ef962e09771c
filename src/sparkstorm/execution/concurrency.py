"""Waiting bolts: several ``execute`` calls of one task at a time, recorded in the input's order."""

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, final

from sparkstorm.components.bolt import AnyBolt, Bolt
from sparkstorm.tuples import Tuple

__all__ = ["Recording", "run_concurrently"]

_Take = Callable[[int, Callable[[Any], None]], None]


@final
class Recording:
    """A collector that writes down its calls, to be made on the real one later."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("_"):
            raise AttributeError(name)

        def record(*args: Any, **kwargs: Any) -> None:
            self._calls.append((name, args, kwargs))

        return record

    def replay(self, collector: Any) -> None:
        """Make the calls on the real collector."""
        for name, args, kwargs in self._calls:
            getattr(collector, name)(*args, **kwargs)


_CURRENT: contextvars.ContextVar[Recording] = contextvars.ContextVar("sparkstorm_recording")


@final
class _CurrentCollector:
    """``self.collector`` of a concurrent bolt: leads to the recording of the running tuple."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_CURRENT.get(), name)

    def __reduce__(self) -> str:
        raise TypeError("a collector cannot be pickled")


def run_concurrently(bolt: AnyBolt, tuples: Iterable[Tuple], limit: int, take: _Take) -> None:
    """Execute up to ``limit`` tuples at a time; hand each one's record to ``take`` in order.

    Threads, or coroutines on one event loop if ``execute`` is ``async def``.
    """
    real = getattr(bolt, "collector", None)
    if isinstance(bolt, Bolt):
        bolt.collector = _CurrentCollector()  # type: ignore[assignment]
    try:
        if inspect.iscoroutinefunction(bolt.execute):  # type: ignore[attr-defined]
            asyncio.run(_run_coroutines(bolt, tuples, limit, take))
        else:
            _run_threads(bolt, tuples, limit, take)
    finally:
        if isinstance(bolt, Bolt) and real is not None:
            bolt.collector = real


def _call(bolt: Any, tup: Tuple) -> tuple[Recording, Any]:
    recording = Recording()
    _CURRENT.set(recording)
    args = (tup,) if isinstance(bolt, Bolt) else (tup, recording)
    return recording, bolt.execute(*args)


def _run_threads(bolt: AnyBolt, tuples: Iterable[Tuple], limit: int, take: _Take) -> None:
    source = enumerate(tuples)
    with ThreadPoolExecutor(limit, thread_name_prefix="sparkstorm-bolt") as pool:
        waiting: list[tuple[int, Future[tuple[Recording, Any]]]] = []
        for index, tup in source:
            waiting.append((index, pool.submit(_call, bolt, tup)))
            if len(waiting) >= 2 * limit:
                _take_first(waiting, take)
        while waiting:
            _take_first(waiting, take)


def _take_first(waiting: list[tuple[int, Future[tuple[Recording, Any]]]], take: _Take) -> None:
    index, future = waiting.pop(0)
    take(index, lambda collector: future.result()[0].replay(collector))


async def _run_coroutines(bolt: Any, tuples: Iterable[Tuple], limit: int, take: _Take) -> None:
    source = enumerate(tuples)
    while window := list(islice(source, limit * 8)):
        gate = asyncio.Semaphore(limit)
        results = await asyncio.gather(
            *(_await_one(bolt, tup, gate) for _, tup in window), return_exceptions=True
        )
        for (index, _), result in zip(window, results, strict=True):
            take(index, _replayer(result))


async def _await_one(bolt: Any, tup: Tuple, gate: asyncio.Semaphore) -> Recording:
    async with gate:
        recording, awaitable = _call(bolt, tup)
        await awaitable
        return recording


def _replayer(result: Recording | BaseException) -> Callable[[Any], None]:
    def replay(collector: Any) -> None:
        if isinstance(result, BaseException):
            raise result
        result.replay(collector)

    return replay
