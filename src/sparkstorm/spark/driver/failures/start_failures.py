"""Why Spark could not start a Python worker: faults of the machine, which go away with patience."""

import re
from collections.abc import Iterator
from enum import Enum

from sparkstorm.spark.internals import java_cause, java_stack

__all__ = ["StartFailure", "start_failure"]

_STARTING = re.compile(r"\bPythonWorkerFactory\.create")
_NO_PATH = "UnixDomainSocketAddress.of("
_NOT_CONNECTED = "Python worker failed to connect back"
_OWN_FAULT = re.compile(
    r"Traceback \(most recent call last\)"
    r"|and terminated with code: (?:\d|\d\d|1[01]\d|12[0-8])\b"  # beyond: ended by a signal
    r"|Cannot run program[^\n]*error=(?!11\b|12\b)"  # these two: too many processes, no memory
)


class StartFailure(Enum):
    """Why no Python worker started. The value is a sentence for people.

    Attributes:
        DIED: the daemon, which forks the workers, has died. Spark notices when it wants the next
            worker, and starts another daemon.
        STUCK: a daemon was killed before it had told its socket, and the task that waited for the
            socket was cancelled meanwhile. Spark's worker factory takes the daemon for running, and
            fails for ever.
        LATE: a process did not connect within the 10 s that Spark allows.
    """

    DIED = (
        "Spark's Python daemon died before it had started a worker: it was killed, by hand or by "
        "the system for want of memory (see the kernel's log)"
    )
    STUCK = (
        "Spark's Python daemon was killed while it started, and Spark goes on to take it for "
        "running (another one is started for the next query)"
    )
    LATE = "a Python process of Spark's did not start within the 10 s that Spark waits for it"


def start_failure(error: BaseException) -> StartFailure | None:
    """Return why Spark could not start a Python worker, or None for any other error.

    A daemon that ends by an error of its own, such as a missing package, gives None: a restart
    would end in the same way.
    """
    text = "\n".join(_texts(error))
    if _STARTING.search(text) is None or _OWN_FAULT.search(text):
        return None
    if _NO_PATH in text:
        return StartFailure.STUCK
    return StartFailure.LATE if _NOT_CONNECTED in text else StartFailure.DIED


def _texts(error: BaseException | None) -> Iterator[str]:
    """Yield the texts of an error and its causes, with Java's frames, which a text may lack."""
    while error is not None:
        yield str(error)
        yield java_stack(error)
        error = error.__cause__ or java_cause(error)
