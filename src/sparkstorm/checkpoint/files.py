"""Checkpoint files: small named files beside the checkpoint that outlive the driver."""

import errno
import os
import tempfile
from pathlib import Path
from typing import Protocol, final

from sparkstorm.errors import CheckpointError

__all__ = ["CheckpointFiles", "LocalFiles", "MemoryFiles"]


_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES)
"""Errors of a file system without folder syncs; it syncs folders by itself, or never."""


class CheckpointFiles(Protocol):
    """Small files, written whole and atomically: a crash leaves the old or the new file."""

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None if there is none."""
        ...

    def write(self, name: str, data: bytes, *, lasting: bool = True) -> None:
        """Write a file atomically; a ``lasting`` file outlives a power failure, too."""
        ...

    def create(self, name: str, data: bytes) -> bool:
        """Write a new file; return False, and do nothing, if the file exists.

        If several processes create the same file at once, exactly one of the calls returns True.
        """
        ...

    def delete(self, name: str) -> None:
        """Delete a file if it is there."""
        ...

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, without the folder, sorted."""
        ...


@final
class MemoryFiles:
    """Files in memory, for the in-process runner; a second run with the same object resumes."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None if there is none."""
        return self._files.get(name)

    def write(self, name: str, data: bytes, *, lasting: bool = True) -> None:
        """Write a file; files in memory never last."""
        self._files[name] = data

    def create(self, name: str, data: bytes) -> bool:
        """Write a new file; return False if the file exists."""
        return self._files.setdefault(name, data) is data

    def delete(self, name: str) -> None:
        """Delete a file if it is there."""
        self._files.pop(name, None)

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, sorted."""
        prefix = folder.rstrip("/") + "/"
        return sorted(n.removeprefix(prefix) for n in self._files if n.startswith(prefix))


@final
class LocalFiles:
    """Files in a local folder, written aside and renamed, so no reader sees half a file.

    Args:
        folder: the folder.
        fsync: whether to force files to the disk; without it a power failure may damage them.
    """

    def __init__(self, folder: Path, *, fsync: bool = True) -> None:
        self._folder = folder
        self._fsync = fsync

    @classmethod
    def of_checkpoint(
        cls, location: str, *, folder: str = "sparkstorm", fsync: bool = True
    ) -> "LocalFiles | None":
        """Return our files in a checkpoint; None if its URL names another file system.

        Raises:
            CheckpointError: the name is empty.
        """
        if not location.strip():
            raise CheckpointError(
                "the checkpoint's name is empty, perhaps a variable that is not set: name a "
                "folder, or leave the checkpoint out for a temporary one"
            )
        if "://" in location and not location.startswith("file:"):
            return None
        path = location.removeprefix("file://").removeprefix("file:")
        return cls(Path(path) / folder, fsync=fsync)

    def is_mine(self, name: str) -> bool:
        """Whether this user owns a file, and nobody else may write to it."""
        try:
            found = (self._folder / name).lstat()
        except OSError:
            return False
        return found.st_uid == os.geteuid() and not found.st_mode & 0o022

    def make(self) -> "LocalFiles":
        """Make the folder now, to find out early if it cannot be made.

        Raises:
            CheckpointError: the folder cannot be made.
        """
        try:
            self._make(self._folder)
        except OSError as error:
            raise CheckpointError(
                f"cannot make the folder {self._folder}: {error.strerror}. Give a folder "
                f"that this user may write to"
            ) from error
        return self

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None if there is none."""
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes, *, lasting: bool = True) -> None:
        """Write a file atomically; a ``lasting`` file outlives a power failure, too."""
        path, synced = self._folder / name, lasting and self._fsync
        self._aside(path, data, synced).replace(path)
        if synced:
            _sync_folder(path.parent)

    def create(self, name: str, data: bytes) -> bool:
        """Write a new file; return False if the file exists."""
        path = self._folder / name
        aside = self._aside(path, data, self._fsync)
        try:
            # A link never replaces a file, as a rename would, and shows the new file whole.
            path.hardlink_to(aside)
        except FileExistsError:
            return False
        finally:
            aside.unlink()
        if self._fsync:
            _sync_folder(path.parent)
        return True

    def delete(self, name: str) -> None:
        """Delete a file if it is there."""
        (self._folder / name).unlink(missing_ok=True)

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, sorted."""
        path = self._folder / folder
        return sorted(p.name for p in path.iterdir() if p.name[0] != ".") if path.is_dir() else []

    def _aside(self, path: Path, data: bytes, synced: bool) -> Path:
        self._make(path.parent)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
        aside = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                if synced:
                    file.flush()
                    os.fsync(file.fileno())
        except BaseException:  # on a full disk each further try would leave another file
            aside.unlink()
            raise
        return aside

    def _make(self, folder: Path) -> None:
        if folder.is_dir():
            return
        self._make(folder.parent)
        folder.mkdir(exist_ok=True)
        if self._fsync:
            _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    """Force the names in a folder to the disk: without its name a file is lost."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
