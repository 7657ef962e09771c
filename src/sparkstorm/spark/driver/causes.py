"""What went wrong, out of the many lines of a Spark error."""

import re

__all__ = ["cause_of"]

_PYTHON_ERROR = re.compile(r"^[\w.]*(?:Error|Exception|Exit|Fault)\b.*")


def cause_of(error: BaseException) -> str:
    """Return it in one line: the last error of a worker's traceback, if there is one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    raised = [line for line in lines if _PYTHON_ERROR.match(line) and not line.startswith("org.")]
    return next(reversed(raised), lines[0] if lines else type(error).__name__)
