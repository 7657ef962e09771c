"""Resources: a folder of scripts that travels with a shell component to wherever it runs."""

import hashlib
import io
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from sparkstorm.errors import TopologyError

__all__ = ["Resources"]

_MOST_BYTES: Final = 16 * 1024 * 1024
"""It travels inside the plan, so it must stay small."""


@final
@dataclass(frozen=True, slots=True)
class Resources:
    """The content of a folder, packed.

    Attributes:
        digest: names the content.
        data: a compressed archive.
    """

    digest: str
    data: bytes = field(repr=False)

    @classmethod
    def pack(cls, folder: str | Path) -> "Resources":
        """Read a folder on the driver's host.

        Raises:
            TopologyError: there is no such folder, or it is too large to travel.
        """
        root = Path(folder)
        if not root.is_dir():
            raise TopologyError(f"the resources {str(folder)!r} are no folder here")
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6) as archive:
            for path in sorted(root.rglob("*")):
                if "__pycache__" not in path.parts:
                    archive.add(path, path.relative_to(root).as_posix(), recursive=False)
        data = packed.getvalue()
        if len(data) > _MOST_BYTES:
            raise TopologyError(
                f"the resources {str(folder)!r} take {len(data):,} bytes, packed; at most "
                f"{_MOST_BYTES:,} travel with a topology. Install the large files on the nodes"
            )
        content = hashlib.blake2b(digest_size=8)
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                content.update(path.relative_to(root).as_posix().encode() + b"\0")
                content.update(hashlib.blake2b(path.read_bytes()).digest())
        return cls(content.hexdigest(), data)

    def unpack(self, place: Path) -> None:
        """Write the files into an empty folder."""
        with tarfile.open(fileobj=io.BytesIO(self.data), mode="r:gz") as archive:
            if hasattr(tarfile, "data_filter"):  # not in each Python 3.11
                archive.extractall(place, filter="data")
            else:
                archive.extractall(place)  # noqa: S202 - packed by ourselves
