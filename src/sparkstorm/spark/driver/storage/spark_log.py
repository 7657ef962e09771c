"""Spark's own logs in a checkpoint: which batches Spark has heard of, and which are committed.

Spark writes ``offsets/N`` before batch N runs, and ``commits/N`` afterwards. The first line is a
version; each further line is JSON or a dash. Spark does not force the files to the disk, so a power
failure may leave the newest file empty.
"""

import json

from sparkstorm.checkpoint.engine_log import EngineLog
from sparkstorm.checkpoint.files import CheckpointFiles
from sparkstorm.errors import CheckpointError

__all__ = ["read_spark_log"]

_AGAIN = (
    "Delete the file: sparkstorm then runs the batch again by its own plan, and if that would be "
    "wrong, the next start says so"
)
_RESTORE = (
    "Restore the whole checkpoint folder from one backup, or give another checkpoint folder: "
    "sources then give unacked messages again, and state begins anew"
)


def read_spark_log(files: CheckpointFiles) -> EngineLog:
    """Return how far Spark's logs go.

    Args:
        files: Spark's part of the checkpoint.

    Raises:
        CheckpointError: the newest file of a log is damaged, so that Spark could not start.
    """
    heard, committed = _newest(files, "offsets"), _newest(files, "commits")
    if not _is_whole(files, "commits", committed):
        raise _damaged(f"commits/{committed}", _AGAIN)
    if not _is_whole(files, "offsets", heard):
        raise _damaged(f"offsets/{heard}", _AGAIN if committed < heard else _RESTORE)
    return EngineLog(heard, committed)


def _newest(files: CheckpointFiles, folder: str) -> int:
    return max((int(name) for name in files.names(folder) if name.isdecimal()), default=-1)


def _is_whole(files: CheckpointFiles, folder: str, number: int) -> bool:
    data = files.read(f"{folder}/{number}")
    if data is None:
        return True  # no batch was written yet
    version, *lines = data.split(b"\n")
    return (
        version[:1] == b"v"
        and bool(lines)
        and all(line == b"-" or _is_json(line) for line in lines)
    )


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _damaged(name: str, mend: str) -> CheckpointError:
    return CheckpointError(
        f"the checkpoint's file spark/{name} is damaged, perhaps by a power failure. {mend}"
    )
