"""The thread of a hosted task."""

import threading
from collections import deque
from collections.abc import Callable
from typing import final

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64
from sparkstorm.errors import ComponentError, SparkstormError
from sparkstorm.sources.hosted.task import HostedTask
from sparkstorm.texts.user_errors import message_of, place_of

__all__ = ["HostedThread"]

_SHORTEST_REST = 0.001
_LONGEST_REST = 0.05


@final
class HostedThread(threading.Thread):
    """Runs a hosted task: verdicts first, then new messages, then a short rest."""

    def __init__(
        self, task: HostedTask, limit: Callable[[], int], broken: Callable[[SparkstormError], None]
    ):
        super().__init__(name=f"sparkstorm-{task.component}-{task.task}", daemon=True)
        self._task = task
        task.deliver_by(self.post)
        self._limit = limit
        self._broken = broken
        self._verdicts: deque[tuple[U64, FailedRoots]] = deque()
        self._wake = threading.Event()
        self._active = True
        self._stopping = False

    def post(self, acked: U64, failed: FailedRoots) -> None:
        """Hand over verdicts; they are delivered on the spout's thread."""
        self._verdicts.append((acked, failed))
        self._wake.set()

    @property
    def idle(self) -> bool:
        """Whether all verdicts were delivered."""
        return not self._verdicts

    def set_active(self, active: bool) -> None:
        """Let the spout emit, or not; verdicts are delivered all the same."""
        self._active = active
        self._wake.set()

    def stop(self) -> None:
        """Deliver what is left, close the spout and end the thread."""
        self._stopping = True
        self._wake.set()

    def run(self) -> None:
        """The thread's loop."""
        try:
            self._loop()
        except SparkstormError as error:
            self._broken(error)
        except BaseException as error:  # noqa: BLE001 - the loop's outer edge: stop loudly
            self._broken(
                ComponentError(
                    f"spout {self._task.component!r} failed: {message_of(error)}{place_of(error)}"
                )
            )
        finally:
            self._task.shut()

    def _loop(self) -> None:
        task, was_active = self._task, True
        rest = _SHORTEST_REST
        while not (self._stopping and self.idle):
            self._deliver_all()
            if self._active != was_active:
                was_active = self._active
                (task.spout.activate if was_active else task.spout.deactivate)()
            if self._active and not self._stopping and task.step(self._limit()):
                rest = _SHORTEST_REST
                continue
            self._wake.wait(rest)
            self._wake.clear()
            rest = min(rest * 2, _LONGEST_REST)

    def _deliver_all(self) -> None:
        self._task.fail_refused()
        while self._verdicts:
            acked, failed = self._verdicts[0]
            self._task.hear(acked, failed)
            self._verdicts.popleft()
