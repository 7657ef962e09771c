"""The identity of a checkpoint: a name that lasts as long as the folder."""

import re
import secrets

from sparkstorm.checkpoint.files import CheckpointFiles
from sparkstorm.errors import CheckpointError

__all__ = ["identity_of"]

_FOLDER = "identity"
_IDENTITY = re.compile("[0-9a-f]{16}")


def identity_of(files: CheckpointFiles) -> str:
    """Return the checkpoint's name; the first call makes it.

    A folder deleted and made again gets another name. Its counts begin at 0 again and must not pass
    for counts of the former folder. The name is that of an empty file, since file names are never
    half written.

    Raises:
        CheckpointError: there are files with other names, so the name may be lost.
    """
    names = files.names(_FOLDER)
    if not names:
        names = [secrets.token_hex(8)]
        files.write(f"{_FOLDER}/{names[0]}", b"")
    if len(names) > 1 or not _IDENTITY.fullmatch(names[0]):
        raise CheckpointError(
            f"the checkpoint's folder sparkstorm/{_FOLDER} must hold one file, whose name is 16 "
            f"hexadecimal digits, and holds {', '.join(names)}: remove what was put there, and "
            f"leave or make the empty file that was there. Committers have stored its name, as "
            f"NAME in TOPOLOGY/NAME/COMMITTER"
        )
    return names[0]
