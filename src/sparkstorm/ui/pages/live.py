"""Live pages: the fresh part of a page, drawn once a second for all who look at it."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import final

from starlette.concurrency import run_in_threadpool

from sparkstorm.clock import Clock

__all__ = ["Easel", "events"]

_FRESH_SECS = 1.0
_MOST = 256
_STILL_SECS = 15.0
"""A proxy may cut a connection on which nothing is sent for longer."""


@final
@dataclass(slots=True)
class _Drawing:
    text: str = ""
    until: float = -1.0
    drawing: asyncio.Lock = field(default_factory=asyncio.Lock)


@final
class Easel:
    """The drawn parts of pages by their addresses; used by one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._drawings: OrderedDict[str, _Drawing] = OrderedDict()

    async def part(self, address: str, draw: Callable[[], str]) -> str:
        """Return the part of an address; draw it if nobody has done so for a second."""
        drawing = self._drawings.setdefault(address, _Drawing())
        self._drawings.move_to_end(address)
        while len(self._drawings) > _MOST:
            self._drawings.popitem(last=False)
        async with drawing.drawing:
            if self._clock.monotonic() >= drawing.until:
                drawing.text = await run_in_threadpool(draw)
                drawing.until = self._clock.monotonic() + _FRESH_SECS
            return drawing.text

    def forget(self) -> None:
        """Let all parts be drawn anew, since somebody has changed something."""
        for drawing in self._drawings.values():
            drawing.until = -1.0


async def events(
    part: Callable[[], Awaitable[str]],
    *,
    ended: Callable[[], bool] = lambda: False,
    pause_secs: float = _FRESH_SECS,
) -> AsyncIterator[str]:
    """Yield a server-sent event for each change of a part, and a sign of life in between.

    Args:
        part: draws the part.
        ended: whether the page's process ends; no reader would let go by itself.
        pause_secs: how often the part is drawn.
    """
    sent, still = None, 0.0
    while not ended():
        text = await part()
        if text != sent:
            sent, still = text, 0.0
            yield event("part", text)
        elif still >= _STILL_SECS:
            still = 0.0
            yield ": still here\n\n"
        await asyncio.sleep(pause_secs)
        still += pause_secs


def event(name: str, text: str) -> str:
    r"""Return one event; each line of the text is a line of data.

    >>> event("part", "a\nb")
    'event: part\ndata: a\ndata: b\n\n'
    """
    return f"event: {name}\n" + "".join(f"data: {line}\n" for line in text.splitlines()) + "\n"
