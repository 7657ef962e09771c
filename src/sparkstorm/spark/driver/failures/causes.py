"""Find the cause in the many lines of a Spark error."""

import re

from sparkstorm.errors import EnvironmentFault

__all__ = ["cause_of", "is_death_of_worker", "is_fault_of_state_store", "lack_of_worker"]

_PYTHON_ERROR = re.compile(r"^[\w.]*(?:Error|Exception|Exit|Fault)\b.*")
_LACK = f"{EnvironmentFault.__module__}.{EnvironmentFault.__qualname__}: "
_WORKER_DIED = re.compile(r"Python worker exited unexpectedly|ExecutorLostFailure[^\n]*")
_STATE_STORE = re.compile(r"\[CANNOT_(?:LOAD|WRITE)_STATE_STORE\b")
_CAUSED_BY = re.compile(r"^Caused by: (?:[\w$]+\.)*([\w$]+: [^\n]*)", re.MULTILINE)
_SPARKS_NAME = re.compile(r"\[[A-Z_]+(?:\.[A-Z_]+)*\]")
_ABORTED = re.compile(r"Job (?:aborted|\S+ cancelled)[^\n]*")


def cause_of(error: BaseException) -> str:
    """Return the cause of an error in a line.

    The cause is the last error of a worker's Python traceback, if the text holds a traceback; else
    a worker's death; else the last in Java's chain of exceptions.
    """
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    raised = [line for line in lines if _PYTHON_ERROR.match(line) and not line.startswith("org.")]
    if raised:
        return raised[-1]
    if died := _WORKER_DIED.search(text):
        return died.group()
    if chain := _CAUSED_BY.findall(text):
        return _innermost(chain)
    aborted = _ABORTED.search(text)
    return aborted.group() if aborted else next(iter(lines), type(error).__name__)


def is_death_of_worker(error: BaseException) -> bool:
    """Whether a worker process died: an accident, unless another dies in the same way."""
    return _WORKER_DIED.search(str(error)) is not None


def is_fault_of_state_store(error: BaseException) -> bool:
    """Whether Spark could not read or write state. Then no message is to blame."""
    return _STATE_STORE.search(str(error)) is not None and not is_death_of_worker(error)


def lack_of_worker(error: BaseException) -> str | None:
    """Return what a worker says it lacks to load the topology; a repetition would not mend that."""
    cause = cause_of(error)
    return cause.removeprefix(_LACK) if cause.startswith(_LACK) else None


def _innermost(chain: list[str]) -> str:
    """Return the last of Java's causes, with the innermost error name that Spark has given."""
    names = [name for cause in chain for name in _SPARKS_NAME.findall(cause)]
    return chain[-1] if not names or names[-1] in chain[-1] else f"{chain[-1]} {names[-1]}"
