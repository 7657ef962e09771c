"""Files in a local folder: whole or not there."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sparkstorm.checkpoint.files import LocalFiles


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


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, list[str]]]:
    """What is forced to the disk, and which names are in its folder at that moment."""
    seen: list[tuple[str, list[str]]] = []
    fsync = os.fsync

    def note(handle: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        folder = path if path.is_dir() else path.parent
        names = [name for name in os.listdir(folder) if name[0] != "."]
        seen.append((str(path.relative_to(tmp_path)), sorted(names)))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    return seen


@pytest.mark.parametrize("method", ["write", "create"])
def test_a_file_is_on_the_disk_before_its_name_and_then_that(
    tmp_path: Path, method: str, synced: list[tuple[str, list[str]]]
) -> None:
    """After a power failure the old or the new is there; new folders are found, too."""
    write: Any = getattr(LocalFiles(tmp_path / "a"), method)
    write("plans/0-1", b"new")
    (new_folder, _), (inner, _), (content, before), (last, after) = synced
    assert (new_folder, inner, last) == (".", "a", "a/plans")
    assert content.startswith("a/plans/.")
    assert (before, after) == ([], ["0-1"])


def test_nothing_is_forced_to_the_disk_that_need_not_last(
    tmp_path: Path, synced: list[tuple[str, list[str]]]
) -> None:
    """Beats, which tell of a living process; and everything, if people want that."""
    files = LocalFiles(tmp_path)
    (tmp_path / "beats").mkdir()
    files.write("beats/1", b"", lasting=False)
    LocalFiles(tmp_path / "b", fsync=False).write("plans/0-1", b"")
    assert synced == []
