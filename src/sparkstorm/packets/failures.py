"""Failed roots as bytes: each cause once, each line of a traceback once."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.packets.encoding import narrow, widen
from sparkstorm.verdicts import Failure

__all__ = ["pack_failed", "unpack_failed"]


def pack_failed(failed: FailedRoots) -> list[bytes]:
    """Return failed roots as three parts of a packet or a file.

    >>> from sparkstorm import Reason
    >>> failed = FailedRoots.alike(np.arange(9, dtype=np.uint64), Failure(reason=Reason.LOST))
    >>> unpack_failed(pack_failed(failed)) == failed
    True
    """
    failed = failed.compact()
    base = int(failed.roots[0]) if len(failed) else 0
    head = {"count": len(failed), "base": base, **_pack_causes(failed.causes)}
    roots = narrow(failed.roots - np.uint64(base))
    return [json.dumps(head).encode(), roots, narrow(failed.which)]


def unpack_failed(parts: Sequence[memoryview | bytes]) -> FailedRoots:
    """Return the failed roots from :func:`pack_failed`'s parts."""
    head = json.loads(bytes(parts[0]))
    roots, which = (widen(memoryview(part), head["count"]) for part in parts[1:3])
    base = np.uint64(head["base"])
    return FailedRoots(roots.astype(np.uint64) + base, which.astype(np.int64), _unpack_causes(head))


def _pack_causes(causes: Sequence[Failure]) -> dict[str, Any]:
    numbers: dict[str, int] = {}
    rows = []
    for failure in causes:
        row = failure.to_json()
        lines = failure.traceback.splitlines(keepends=True)
        row["traceback"] = [numbers.setdefault(line, len(numbers)) for line in lines]
        rows.append(row)
    return {"lines": list(numbers), "causes": rows}


def _unpack_causes(packed: dict[str, Any]) -> tuple[Failure, ...]:
    lines = packed["lines"]
    return tuple(
        Failure.from_json({**row, "traceback": "".join(lines[line] for line in row["traceback"])})
        for row in packed["causes"]
    )
