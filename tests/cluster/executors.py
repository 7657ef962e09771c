"""The executors of a standalone cluster on this machine, as the kernel shows them."""

import contextlib
from collections.abc import Collection
from pathlib import Path


def executors_of(workers: Collection[int]) -> list[int]:
    """The executor processes that these workers have started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(status.read_text().rsplit(")", 1)[1].split()[1])
            command = (status.parent / "cmdline").read_bytes()
            if parent in workers and b"CoarseGrainedExecutorBackend" in command:
                found.append(int(status.parent.name))
    return sorted(found)
