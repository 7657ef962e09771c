"""Files in a local folder: whole or not there."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sparkstorm.delivery.files import LocalFiles


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Let no file of this process become larger, as on a disk that is full."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


@pytest.mark.parametrize("method", ["write", "create"])
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, method: str) -> None:
    """Each further try would leave another piece; what was there stays."""
    files = LocalFiles(tmp_path)
    files.write("lease", b"old")
    write: Any = getattr(files, method)
    for _ in range(3):
        with room_for(10), pytest.raises(OSError, match="File too large"):
            write("lease", bytes(100))
    assert [path.name for path in tmp_path.iterdir()] == ["lease"]
    assert files.read("lease") == b"old"
