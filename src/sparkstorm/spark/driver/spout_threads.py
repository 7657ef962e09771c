"""The threads of a run's hosted spout tasks, in the driver."""

import threading
from collections.abc import Callable
from typing import final

from sparkstorm.errors import SparkstormError
from sparkstorm.sources.hosted.task import HostedTask
from sparkstorm.sources.hosted.thread import HostedThread

__all__ = ["SpoutThreads"]

_JOIN_SECS = 10.0


@final
class SpoutThreads:
    """A thread for each hosted spout task.

    Args:
        broken: called with the error of a spout that cannot go on.
    """

    def __init__(self, broken: Callable[[SparkstormError], None]) -> None:
        self._broken = broken
        self._threads: list[HostedThread] = []

    def add(self, task: HostedTask, limit: Callable[[], int]) -> None:
        """Make the thread of a task, after the task's spout was opened.

        ``limit`` returns how many messages the spout may emit now.
        """
        self._threads.append(HostedThread(task, limit, self._broken))

    def start(self) -> None:
        """Start all threads: from now on the spouts emit."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Deliver the verdicts that are left, close the spouts and end the threads."""
        for thread in self._threads:
            thread.stop()
        for thread in self._threads:
            if thread is not threading.current_thread():  # a spout may stop its own run
                thread.join(timeout=_JOIN_SECS)

    def set_active(self, active: bool) -> None:
        """Let the spouts emit, or not."""
        for thread in self._threads:
            thread.set_active(active)

    @property
    def idle(self) -> bool:
        """Whether every spout has heard all verdicts."""
        return all(thread.idle for thread in self._threads)
