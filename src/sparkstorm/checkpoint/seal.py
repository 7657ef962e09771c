"""Seals: the first line of a file says how long the rest is, and has its checksum.

A file that was cut short, lost its content or had a byte changed does not fit its seal. Nothing
that lies behind a broken seal is ever read.
"""

import hashlib
import re

from sparkstorm.checkpoint.files import CheckpointFiles
from sparkstorm.errors import CheckpointError

__all__ = ["BrokenSealError", "is_seal", "read_sealed", "seal", "unseal", "write_sealed"]

_HEAD = re.compile(rb'\{"sealed": 1, "bytes": (\d{1,18}), "blake2b": "([0-9a-f]{32})"\}')


class BrokenSealError(ValueError):
    """A file is not as it was written; says in which way."""


def seal(data: bytes) -> bytes:
    """Return what is to be written.

    >>> unseal(seal(b"abc"))
    b'abc'
    """
    head = f'{{"sealed": 1, "bytes": {len(data)}, "blake2b": "{_checksum(data)}"}}\n'
    return head.encode() + data


def unseal(data: bytes) -> bytes:
    """Return what was sealed.

    Raises:
        BrokenSealError: it is no longer what was written.
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
    """Whether a line is a seal, fitting or not."""
    return _HEAD.fullmatch(line) is not None


def write_sealed(files: CheckpointFiles, name: str, data: bytes) -> None:
    """Write a file with its seal."""
    files.write(name, seal(data))


def read_sealed(files: CheckpointFiles, name: str, mend: str) -> bytes | None:
    """Return what was written into a file, or None if there is none.

    Args:
        files: where it is.
        name: its name.
        mend: what people can do if it is damaged, as a sentence.

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
