"""The heartbeat: the thread that renews a lease."""

import threading
from collections.abc import Callable
from typing import final

from sparkstorm.checkpoint.lease import Lease
from sparkstorm.errors import SupersededError
from sparkstorm.texts.logs import logger_of

__all__ = ["Heartbeat"]

_logger = logger_of(__name__)


@final
class Heartbeat(threading.Thread):
    """Renews a lease every beat until it is stopped, or the lease is lost.

    Args:
        lease: a lease this run holds.
        lost: called when another run has taken over.
    """

    def __init__(self, lease: Lease, lost: Callable[[SupersededError], None]) -> None:
        super().__init__(name="sparkstorm-lease", daemon=True)
        self._lease = lease
        self._lost = lost
        self._stopping = threading.Event()

    def stop(self) -> None:
        """End the thread and wait for it."""
        self._stopping.set()
        self.join()

    def run(self) -> None:
        """The thread's loop."""
        while not self._stopping.wait(self._lease.beat_secs):
            try:
                self._lease.renew()
            except SupersededError as error:
                self._lost(error)
                return
            except Exception as error:  # noqa: BLE001 - the loop's outer edge: the next beat may work
                _logger.warning("the lease of the checkpoint could not be renewed: %s", error)
