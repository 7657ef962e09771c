"""Where the letters of a run without a checkpoint are kept."""

import os
from pathlib import Path

__all__ = ["default_folder"]


def default_folder() -> Path:
    """Return the user's folder of dead letters: one folder per topology is in it.

    ``$XDG_STATE_HOME``, or else ``~/.local/state``: what should outlive a restart and is neither
    a setting nor a cache.
    """
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "sparkstorm" / "dead-letters"
