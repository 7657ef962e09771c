"""Seals: the first line of a file holds the length and the checksum of the rest.

A file that was cut short, lost its content or had a byte changed does not fit its seal. Nothing
behind a broken seal is ever read.
"""

import hashlib
import re

from sparkstorm.checkpoint.files import CheckpointFiles
from sparkstorm.errors import CheckpointError

__all__ = ["BrokenSealError", "is_seal", "read_sealed", "seal", "unseal", "write_sealed"]

_HEAD = re.compile(rb'\{"sealed": 1, "bytes": (\d{1,18}), "blake2b": "([0-9a-f]{32})"\}')


class BrokenSealError(ValueError):
    """A file is not as it was written; the text says how."""


def seal(data: bytes) -> bytes:
    """Return the sealed bytes of some data.

    >>> unseal(seal(b"abc"))
    b'abc'
    """
    head = f'{{"sealed": 1, "bytes": {len(data)}, "blake2b": "{_checksum(data)}"}}\n'
    return head.encode() + data


def unseal(data: bytes) -> bytes:
    """Return the data of sealed bytes.

    Raises:
        BrokenSealError: the data is not as it was sealed.
    """
    head, end, rest = data.partition(b"\n")
    match = _HEAD.fullmatch(head)
    if match is None or not end:
        raise BrokenSealError("it does not begin with a seal" if data else "it is empty")
    size = int(match[1])
    if len(rest) != size:
        raise BrokenSealError(f"of its {size} bytes behind the seal {len(rest)} are there")
    if _checksum(rest).encode() != match[2]:
        raise BrokenSealError("its checksum does not fit its content")
    return rest


def is_seal(line: bytes) -> bool:
    """Return whether a line is a seal, fitting or not."""
    return _HEAD.fullmatch(line) is not None


def write_sealed(files: CheckpointFiles, name: str, data: bytes) -> None:
    """Write a file with its seal."""
    files.write(name, seal(data))


def read_sealed(files: CheckpointFiles, name: str, mend: str) -> bytes | None:
    """Return the data of a sealed file, or None if there is no file.

    Args:
        files: the place of the file.
        name: its name.
        mend: how people can mend a damaged file, as a sentence.

    Raises:
        CheckpointError: the file is damaged.
    """
    data = files.read(name)
    try:
        return None if data is None else unseal(data)
    except BrokenSealError as error:
        raise CheckpointError(
            f"the checkpoint's file sparkstorm/{name} is damaged ({error}), perhaps since the "
            f"machine lost its power. {mend}"
        ) from error


def _checksum(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
