"""Tapped tuples: kept until their batch is committed, then handed to whoever watches."""

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, TypeAlias, final

from sparkstorm.packets.columns import rows_of
from sparkstorm.packets.packet import Packet
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.texts.logs import logger_of

__all__ = ["Tap", "Taps"]

Tap: TypeAlias = Callable[[StreamKey, int, list[tuple[Any, ...]]], None]
"""Called with a tapped stream, the emitting task and the tuples, once their batch is committed.

What it raises is logged and changes nothing else: it only watches, and is not called again with the
same tuples.
"""

_logger = logger_of(__name__)


@final
class Taps:
    """Packets of tapped streams on their way to a :data:`Tap`; thread-safe."""

    def __init__(self, plan: Plan, tap: Tap | None) -> None:
        self._plan = plan
        self._tap = tap
        self._packets: list[Packet] = []
        self._lock = Lock()
        self._raised: set[str] = set()

    @property
    def waiting(self) -> bool:
        """Whether some are not out yet; until they are, the topology is not drained."""
        return bool(self._packets)

    def add(self, packets: Iterable[Packet]) -> None:
        """Take in the packets that came out in a committed batch, if they are tapped."""
        keys, taps = self._plan.stream_keys, self._plan.taps
        with self._lock:
            self._packets += [packet for packet in packets if keys[packet.head.stream] in taps]

    def tell(self) -> None:
        """Hand out what waits; to be called without any lock held, since a tap may block."""
        with self._lock:
            packets = list(self._packets)
        if self._tap is not None:
            for packet in packets:
                self._show(packet, self._tap)
        with self._lock:
            del self._packets[: len(packets)]

    def _show(self, packet: Packet, tap: Tap) -> None:
        key = self._plan.stream_keys[packet.head.stream]
        try:
            rows = list(rows_of(packet.columns(), packet.count))
            tap(key, packet.head.source, rows)
        except Exception as error:  # noqa: BLE001 - user code, and it only watches
            if key.component not in self._raised:  # else a log line for each batch
                self._raised.add(key.component)
                _logger.error(
                    "the tap of %r raised %s: %s; the run goes on, and further errors of this tap "
                    "are not shown",
                    key.component,
                    type(error).__name__,
                    error,
                )
