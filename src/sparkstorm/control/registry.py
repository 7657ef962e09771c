"""The registry: this user's running topologies on this machine, as files in a folder.

Each driver writes an entry, and answers on a socket beside it. An entry outlives a killed driver,
so people still find the topology's checkpoint; it shows as dead, and goes after a day.
"""

import json
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from sparkstorm.checkpoint.holder import Holder
from sparkstorm.errors import ConfigError, EnvironmentFault

__all__ = ["Entry", "Registry"]

_FOLDER = "SPARKSTORM_REGISTRY"
"""The variable of the environment that names another folder."""

_KEPT_SECS = 86_400.0
_LONGEST_SOCKET = 100
"""A Unix socket's path has at most 107 bytes."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One topology in the registry.

    Attributes:
        id: the topology's name and its run's, as ``NAME-RUN``.
        name: the topology's name.
        holder: the driver's process.
        master: where Spark runs.
        checkpoint: the checkpoint's place; empty for a temporary one.
        socket: where the driver answers.
        page: the address of the web page that runs with it; empty if there is none.
        origin: the JSON of how the command line loaded the topology; None if a program made it.
    """

    id: str
    name: str
    holder: Holder
    master: str = ""
    checkpoint: str = ""
    socket: str = ""
    page: str = ""
    origin: Mapping[str, Any] | None = None

    @property
    def is_dead(self) -> bool:
        """Whether the driver has ended without a farewell."""
        return self.holder.has_died()

    def to_json(self) -> str:
        """Return the entry as text for :meth:`from_json`."""
        data = {name: getattr(self, name) for name in self.__slots__ if name != "holder"}
        return json.dumps({**data, "holder": json.loads(self.holder.to_json())})

    @classmethod
    def from_json(cls, text: str) -> "Entry":
        """Return the entry of :meth:`to_json`'s text.

        Raises:
            ValueError: the text is no entry.
        """
        try:
            data: dict[str, Any] = json.loads(text)
            holder = Holder.from_json(json.dumps(data.pop("holder")).encode())
            return cls(holder=holder, **data)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"no entry of a registry: {error}") from error


@final
class Registry:
    """The folder of entries; only this user may enter it.

    Args:
        folder: the folder; by default the one of this user.

    Raises:
        EnvironmentFault: the folder belongs to somebody else, or others may write to it.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or _default_folder()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(self.folder)

    def add(self, entry: Entry) -> Entry:
        """Write an entry, with a place for its socket; return it."""
        entry = replace(entry, socket=str(self._socket(entry.id)))
        self._write(entry)
        return entry

    def change(self, entry: Entry) -> None:
        """Write an entry anew."""
        self._write(entry)

    def remove(self, entry: Entry) -> None:
        """Remove an entry, and its socket."""
        for path in (self._path(entry.id), Path(entry.socket)):
            with suppress(OSError):
                path.unlink()

    def entries(self) -> list[Entry]:
        """Return all entries, the newest first; those long dead are removed."""
        found = []
        for path in self.folder.glob("*.json"):
            with suppress(OSError, ValueError):  # just removed, or of a later version
                entry = Entry.from_json(path.read_text())
                if entry.is_dead and time.time() - path.stat().st_mtime > _KEPT_SECS:
                    self.remove(entry)
                else:
                    found.append(entry)
        return sorted(found, key=lambda entry: entry.holder.since, reverse=True)

    def find(self, name: str) -> Entry:
        """Return the running topology of a name or an id; an id may be abbreviated.

        Raises:
            ConfigError: none is of that name, or several.
        """
        entries = self.entries()
        running = [entry for entry in entries if not entry.is_dead]
        found = [entry for entry in running if name == entry.name]
        found = found or [entry for entry in running if name and entry.id.startswith(name)]
        if len(found) == 1:
            return found[0]
        if found:
            several = ", ".join(entry.id for entry in found)
            raise ConfigError(f"{name!r} may be one of {several}: give its id")
        dead = next((one for one in entries if name in (one.name, one.id)), None)
        if dead is not None:
            raise ConfigError(
                f"topology {name!r} has ended without a farewell (pid {dead.holder.pid}): its "
                f"driver was killed. {_ways_on(dead)}"
            )
        known = ", ".join(entry.name for entry in running) or "none"
        raise ConfigError(
            f"no topology {name!r} runs on this machine under this user; running: {known}"
        )

    def _write(self, entry: Entry) -> None:
        path = self._path(entry.id)
        draft = path.with_suffix(f".{secrets.token_hex(4)}.draft")
        draft.write_text(entry.to_json())
        draft.replace(path)

    def _path(self, entry_id: str) -> Path:
        return self.folder / f"{entry_id}.json"

    def _socket(self, entry_id: str) -> Path:
        path = self.folder / f"{entry_id}.sock"
        if len(os.fsencode(path)) <= _LONGEST_SOCKET:
            return path
        # A long name or folder: the entry says where the socket is, so any short path does.
        return Path(tempfile.mkdtemp(prefix="sparkstorm-", dir="/tmp")) / "s"


def _ways_on(dead: Entry) -> str:
    if not dead.checkpoint:
        return "It had no checkpoint, so it begins anew"
    return f"Start it again with --checkpoint {dead.checkpoint}: it goes on"


def _default_folder() -> Path:
    named = os.environ.get(_FOLDER)
    if named:
        return Path(named)
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.access(runtime, os.W_OK):
        return Path(runtime) / "sparkstorm"
    return Path("/tmp") / f"sparkstorm-{os.geteuid()}"  # noqa: S108 - its owner is checked


def _check_private(folder: Path) -> None:
    found = folder.lstat()
    is_mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    if not is_mine or found.st_mode & 0o022:
        raise EnvironmentFault(
            f"{folder} must be a folder of yours that nobody else may write to: it lists your "
            f"running topologies. Remove it, or name another one in {_FOLDER}"
        )
