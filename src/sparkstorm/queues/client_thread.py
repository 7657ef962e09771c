"""The client thread: runs a lease keeper beside the spout's own thread."""

import threading
import time
from typing import final

from sparkstorm.errors import ComponentError, SparkstormError, SpoutConnectionError
from sparkstorm.queues.keeper import LeaseKeeper
from sparkstorm.texts.user_errors import message_of, place_of

__all__ = ["ClientThread"]

_TAKE_SECS = 0.05
"""The longest wait for a first message: leases and settlements wait meanwhile."""

_REST_SECS = 0.01

_CLOSE_SECS = 30.0
"""The longest time that giving back may take at the end; a long poll takes 20 seconds of it."""


@final
class ClientThread(threading.Thread):
    """Runs the steps of a keeper until it is stopped.

    Attributes:
        fault: the error that has ended the thread, or None.
    """

    def __init__(self, keeper: LeaseKeeper, name: str) -> None:
        super().__init__(name=f"{name}-queue", daemon=True)
        self.fault: SparkstormError | None = None
        self._keeper = keeper
        self._wake = threading.Event()
        self._stopping = False

    def start_connected(self, secs: float) -> None:
        """Start, and wait for the connection.

        Raises:
            SpoutConnectionError: the queue did not answer in time.
            SparkstormError: the queue cannot be used.
        """
        self.start()
        deadline = time.monotonic() + secs
        while not self._keeper.connected and self.fault is None and time.monotonic() < deadline:
            time.sleep(_REST_SECS)
        if self.fault is None and not self._keeper.connected:
            said = "; ".join(self._keeper.reports)
            self.stop()
            raise SpoutConnectionError(
                f"no connection within {secs:g} s: {said or repr(self._keeper)}. Start the server, "
                f"or mend the address"
            )
        if self.fault is not None:
            raise self.fault

    def wake(self) -> None:
        """Cut the thread's rest short: there is something to settle."""
        if not self._wake.is_set():  # much cheaper than to set it once more
            self._wake.set()

    def stop(self) -> None:
        """Give back the messages that are not settled, and close the connection."""
        self._stopping = True
        self._wake.set()
        self.join(_CLOSE_SECS)

    def run(self) -> None:
        """The thread's loop."""
        try:
            while not self._stopping:
                if not self._keeper.step(_TAKE_SECS):
                    self._wake.wait(_REST_SECS)
                    self._wake.clear()
            self._keeper.close()
        except SparkstormError as error:
            self.fault = error
        except BaseException as error:  # noqa: BLE001 - the loop's outer edge: stop loudly
            self.fault = ComponentError(
                f"{self._keeper!r} failed: {message_of(error)}{place_of(error)}"
            )
