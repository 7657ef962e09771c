"""The name of a checkpoint, which lasts as long as it does."""

import secrets

from sparkstorm.delivery.files import CheckpointFiles

__all__ = ["identity_of"]

_NAME = "identity"


def identity_of(files: CheckpointFiles) -> str:
    """Return the checkpoint's name, given to it when it is first asked for.

    A folder that was deleted and made again has another one: what counts from 0 again in it must
    not pass for what the former one has counted.
    """
    data = files.read(_NAME)
    if data is None:
        data = secrets.token_hex(8).encode()
        files.write(_NAME, data)
    return data.decode()
