"""``sparkstorm new``: a starter project."""

from importlib import resources
from pathlib import Path

from sparkstorm.errors import ConfigError

__all__ = ["create_project"]

_SUFFIX = ".tmpl"
"""The templates' suffix: without .py, no tool collects or checks them as our own files."""


def create_project(folder: Path) -> list[Path]:
    """Write the starter project into a new or empty folder; return its files.

    Raises:
        ConfigError: the folder is in use or cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(
            f"{str(folder)!r} is there already and not an empty folder: choose another name"
        )
    templates = resources.files("sparkstorm.cli") / "starter"
    made = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for template in sorted(templates.iterdir(), key=lambda entry: entry.name):
            if template.name.endswith(_SUFFIX):
                path = folder / template.name.removesuffix(_SUFFIX)
                path.write_text(template.read_text(encoding="utf-8"), encoding="utf-8")
                made.append(path)
    except OSError as error:
        raise ConfigError(
            f"cannot write to {str(folder)!r}: {error.strerror}. Choose another place"
        ) from error
    return made
