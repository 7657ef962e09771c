"""Our modules as plain Python, although compiled ones lie beside them."""

import sys
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from pathlib import Path

__all__ = ["SRC", "load_plain_python"]

SRC = Path(__file__).parents[2] / "src"


def load_plain_python() -> None:
    """Let Python find the sources alone; to be called before anything of ours is loaded."""
    sys.path_hooks.insert(0, _find_sources_only)
    sys.path_importer_cache.clear()


def _find_sources_only(path: str) -> FileFinder:
    if not Path(path).is_relative_to(SRC):
        raise ImportError("not ours")
    return FileFinder(path, (SourceFileLoader, SOURCE_SUFFIXES))
