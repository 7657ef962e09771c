"""The origin of a topology: how the command line loaded it, kept beside its dead letters."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, final

from sparkstorm.checkpoint.files import LocalFiles
from sparkstorm.checkpoint.seal import BrokenSealError, seal, unseal
from sparkstorm.dead_letters.store import LetterStore
from sparkstorm.texts.credentials import holds_secret, looks_secret

__all__ = ["Origin"]

_NAME = "topology.json"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The place of a topology, for ``sparkstorm debug``.

    Attributes:
        target: the file or module, as for ``sparkstorm run``; a file with its whole path.
        args: the arguments for the function ``topology(args)``.
        settings: the settings of the command line, as ``KEY=VALUE``.
        folder: the working folder of the run.
        cut: whether arguments or settings were left out, since they look secret.
    """

    target: str
    args: Sequence[str] = ()
    settings: Sequence[str] = ()
    folder: str
    cut: bool = False

    def without_secrets(self) -> "Origin":
        """Return the origin for a file: arguments and settings that look secret are left out."""
        args = [one for one in self.args if not _is_secret(one)]
        settings = [one for one in self.settings if not _is_secret(one)]
        cut = len(args) + len(settings) < len(self.args) + len(self.settings)
        return Origin(target=self.target, args=args, settings=settings, folder=self.folder, cut=cut)

    def to_json(self) -> dict[str, Any]:
        """Return the origin as JSON types."""
        return asdict(self)

    @classmethod
    def write(cls, origin: "Origin | None", store: LetterStore) -> None:
        """Write the origin of a run beside its letters; without one, remove an earlier run's."""
        name = f"{store.folder}/{_NAME}"
        if origin is None:
            store.files.delete(name)
        else:
            text = json.dumps(origin.without_secrets().to_json())
            store.files.write(name, seal(text.encode()))

    @classmethod
    def read(cls, store: LetterStore) -> "Origin | None":
        """Return the origin of a store's last run; None if it is unknown, or its file damaged."""
        data = store.files.read(f"{store.folder}/{_NAME}")
        try:
            return None if data is None else cls(**json.loads(unseal(data)))
        except (BrokenSealError, ValueError, TypeError):
            return None

    @staticmethod
    def is_mine(store: LetterStore) -> bool:
        """Whether only this user can have written the origin's file."""
        files = store.files
        return isinstance(files, LocalFiles) and files.is_mine(f"{store.folder}/{_NAME}")


def _is_secret(text: str) -> bool:
    return looks_secret(text.partition("=")[0]) or holds_secret(text)
