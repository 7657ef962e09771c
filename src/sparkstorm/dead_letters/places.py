"""The place of letters of a run without a checkpoint."""

import os
from pathlib import Path

__all__ = ["default_folder"]


def default_folder() -> Path:
    """Return the user's folder of dead letters, with a folder for each topology.

    The folder is in ``$XDG_STATE_HOME``, or else in ``~/.local/state``: the place for data that
    should outlive a restart and is neither a setting nor a cache.
    """
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "sparkstorm" / "dead-letters"
