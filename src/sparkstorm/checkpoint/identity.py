"""The name of a checkpoint, which lasts as long as it does."""

import re
import secrets

from sparkstorm.checkpoint.files import CheckpointFiles
from sparkstorm.errors import CheckpointError

__all__ = ["identity_of"]

_FOLDER = "identity"
_IDENTITY = re.compile("[0-9a-f]{16}")


def identity_of(files: CheckpointFiles) -> str:
    """Return the checkpoint's name, given to it when it is first asked for.

    A folder that was deleted and made again has another one: what counts from 0 again in it must
    not pass for what the former one has counted. It is the name of an empty file: names are never
    half there.

    Raises:
        CheckpointError: there are files of other names, so it may have been lost.
    """
    names = files.names(_FOLDER)
    if not names:
        names = [secrets.token_hex(8)]
        files.write(f"{_FOLDER}/{names[0]}", b"")
    if len(names) > 1 or not _IDENTITY.fullmatch(names[0]):
        raise CheckpointError(
            f"the checkpoint's folder sparkstorm/{_FOLDER} must hold one file, whose name is 16 "
            f"hexadecimal digits, and holds {', '.join(names)}: remove what was put there, and "
            f"leave or make the empty file that was there. Its name is that which committers "
            f"have kept behind the topology's, TOPOLOGY/NAME/COMMITTER"
        )
    return names[0]
