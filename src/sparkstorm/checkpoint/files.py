"""Where the driver keeps what must outlive it: small named files beside the checkpoint."""

import errno
import os
import tempfile
from pathlib import Path
from typing import Protocol, final

from sparkstorm.errors import CheckpointError

__all__ = ["CheckpointFiles", "LocalFiles", "MemoryFiles"]


_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES)
"""How a file system says that folders cannot be synced there; it then does so by itself, or not."""


class CheckpointFiles(Protocol):
    """Small files, each written whole and atomically: after a crash the old or the new is there."""

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None if there is none."""
        ...

    def write(self, name: str, data: bytes, *, lasting: bool = True) -> None:
        """Write a file atomically; a ``lasting`` one outlives a power failure, too."""
        ...

    def create(self, name: str, data: bytes) -> bool:
        """Write a file that is not there yet; returns False, and does nothing, if it is.

        If several processes create the same file at once, exactly one of them is told True.
        """
        ...

    def delete(self, name: str) -> None:
        """Delete a file if it is there."""
        ...

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, without the folder, sorted."""
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
        """Write a file; none of them lasts."""
        self._files[name] = data

    def create(self, name: str, data: bytes) -> bool:
        """Write a file that is not there yet; returns False if it is."""
        return self._files.setdefault(name, data) is data

    def delete(self, name: str) -> None:
        """Delete a file if it is there."""
        self._files.pop(name, None)

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, sorted."""
        prefix = folder.rstrip("/") + "/"
        return sorted(n.removeprefix(prefix) for n in self._files if n.startswith(prefix))


@final
class LocalFiles:
    """Files in a local folder; written aside and renamed, so that none is ever half there.

    Args:
        folder: the folder.
        fsync: whether files are forced to the disk; if not, a power failure may damage them.
    """

    def __init__(self, folder: Path, *, fsync: bool = True) -> None:
        self._folder = folder
        self._fsync = fsync

    @classmethod
    def of_checkpoint(
        cls, location: str, *, folder: str = "sparkstorm", fsync: bool = True
    ) -> "LocalFiles | None":
        """Our files in a checkpoint; None if its URL says that it is on another file system.

        Raises:
            CheckpointError: it has no name.
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

    def make(self) -> "LocalFiles":
        """Make the folder now, to find out early if that cannot be done.

        Raises:
            CheckpointError: it cannot.
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
        """Write a file atomically; a ``lasting`` one outlives a power failure, too."""
        path, synced = self._folder / name, lasting and self._fsync
        self._aside(path, data, synced).replace(path)
        if synced:
            _sync_folder(path.parent)

    def create(self, name: str, data: bytes) -> bool:
        """Write a file that is not there yet; returns False if it is."""
        path = self._folder / name
        aside = self._aside(path, data, self._fsync)
        try:
            path.hardlink_to(aside)  # fails if it is there, and shows it whole if not
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
        """The names of the files in a folder, sorted."""
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
        except BaseException:  # a full disk: each further try would leave another one
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
    """Force the names in a folder to the disk: a file is only found by its name."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
