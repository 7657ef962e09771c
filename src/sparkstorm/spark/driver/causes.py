"""What went wrong, out of the many lines of a Spark error."""

import re

__all__ = ["cause_of", "is_death_of_worker"]

_PYTHON_ERROR = re.compile(r"^[\w.]*(?:Error|Exception|Exit|Fault)\b.*")
_WORKER_DIED = re.compile(r"Python worker exited unexpectedly|ExecutorLostFailure[^\n]*")
_ABORTED = re.compile(r"Job (?:aborted|\S+ cancelled)[^\n]*")


def cause_of(error: BaseException) -> str:
    """Return it in one line: the last error of a worker's traceback, if there is one."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    raised = [line for line in lines if _PYTHON_ERROR.match(line) and not line.startswith("org.")]
    if raised:
        return raised[-1]
    known = _WORKER_DIED.search(text) or _ABORTED.search(text)
    return known.group() if known else next(iter(lines), type(error).__name__)


def is_death_of_worker(error: BaseException) -> bool:
    """Whether a process has died that worked for Spark: an accident, unless it happens again."""
    return _WORKER_DIED.search(str(error)) is not None
