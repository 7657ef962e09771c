"""Where the driver keeps what must outlive it: small named files beside the checkpoint."""

from typing import Protocol, final

__all__ = ["CheckpointFiles", "MemoryFiles"]


class CheckpointFiles(Protocol):
    """Small files, each written whole and atomically: after a crash the old or the new is there."""

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None if there is none."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Write a file atomically."""
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

    def write(self, name: str, data: bytes) -> None:
        """Write a file."""
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
