"""Failures as they travel: very many of them may look nearly alike."""

from collections.abc import Sequence
from typing import Any

from sparkstorm.verdicts import Failure

__all__ = ["pack_failures", "unpack_failures"]


def pack_failures(failures: Sequence[Failure]) -> dict[str, Any]:
    r"""Return failures as JSON's types; each line that is in their tracebacks stands there once.

    >>> from sparkstorm import Reason
    >>> failed = Failure(reason=Reason.ERROR, traceback="at a\nat b\n")
    >>> packed = pack_failures([failed, failed])
    >>> packed["lines"]
    ['at a\n', 'at b\n']
    >>> unpack_failures(packed) == [failed, failed]
    True
    """
    numbers: dict[str, int] = {}
    rows = []
    for failure in failures:
        row = failure.to_json()
        lines = failure.traceback.splitlines(keepends=True)
        row["traceback"] = [numbers.setdefault(line, len(numbers)) for line in lines]
        rows.append(row)
    return {"lines": list(numbers), "failures": rows}


def unpack_failures(packed: dict[str, Any]) -> list[Failure]:
    """Return what :func:`pack_failures` has packed."""
    lines = packed["lines"]
    return [
        Failure.from_json({**row, "traceback": "".join(lines[line] for line in row["traceback"])})
        for row in packed["failures"]
    ]
