"""Taps: tapped tuples are kept until their batch is committed, then handed to a watcher."""

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

An error of the tap is logged and changes nothing else. The tap does not get the same tuples again.
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
        """Whether tapped tuples are not handed out yet; until then the topology is not drained."""
        return bool(self._packets)

    def add(self, packets: Iterable[Packet]) -> None:
        """Add the tapped packets of a committed batch; packets of committers are not for taps."""
        keys, taps = self._plan.stream_keys, self._plan.taps
        with self._lock:
            self._packets += [packet for packet in packets if keys[packet.head.stream] in taps]

    def tell(self) -> None:
        """Hand out all packets; to be called without a lock, since a tap may block."""
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
