"""Scratch folders: temporary folders that go with their driver.

A killed driver cannot remove its folders, so the next driver does. A folder's name identifies its
maker: the pid, the start time, and a digest of the machine of the pid. A driver removes only
folders of its user, made on this machine, by a process seen to have ended. All other folders stay.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sparkstorm.checkpoint.holder import Holder

__all__ = ["make_folder", "remove_abandoned"]

_NAME = re.compile(r"sparkstorm-(?:.*-)?(\d+)-(\d+)-([0-9a-f]{8})-[^-]+")


def make_folder(purpose: str) -> Path:
    """Make a folder only this user may enter; it lives at most as long as this process.

    Args:
        purpose: a word for people who look at the temporary files.
    """
    return Path(tempfile.mkdtemp(prefix=f"sparkstorm-{purpose}-{_maker()}"))


def remove_abandoned() -> None:
    """Remove the folders left behind by ended processes."""
    me = Holder.here("", 0.0)
    for entry in _folders():
        found = _NAME.fullmatch(entry.name)
        if found is None or not me.machine or found[3] != _digest(me.machine):
            continue
        maker = Holder(run="", machine=me.machine, pid=int(found[1]), started=found[2])
        if maker.has_died():
            shutil.rmtree(entry.path, ignore_errors=True)  # another driver may do so, too


def _folders() -> Iterator[os.DirEntry[str]]:
    """Yield this user's folders among the temporary files; no links."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith("sparkstorm-") and _is_mine(entry):
                yield entry


def _is_mine(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder of this user: other users' processes may be invisible."""
    try:
        is_folder = entry.is_dir(follow_symlinks=False)
        return is_folder and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
    except OSError:
        return False


def _maker() -> str:
    me = Holder.here("", 0.0)
    return f"{me.pid}-{me.started}-{_digest(me.machine)}-" if me.machine and me.started else ""


def _digest(machine: str) -> str:
    return hashlib.blake2b(machine.encode(), digest_size=4).hexdigest()
