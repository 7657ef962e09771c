"""Adapters that nobody here wrote: fetched once, into the cache folder of the servers' jars."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkstorm import Config, Topology
from sparkstorm.testing import LocalRunner, wait_until
from tests.tools.storm import put_adapters

collect_ignore = ["words"]
"""Components, whose adapters our own Python does not have."""

WORDS = Path(__file__).parent / "words"
PACKAGES = ("pystorm==3.1.4", "streamparse==5.0.1", "msgpack==1.1.2")


@pytest.fixture(scope="session")
def storm_resources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A resources folder with Storm's own adapters and the components of ``words``."""
    folder = tmp_path_factory.mktemp("resources")
    put_adapters(folder)
    for path in WORDS.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    return folder


@pytest.fixture(scope="session")
def streamparse_python() -> str:
    """The Python of a virtual environment with pystorm and streamparse, apart from ours."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sparkstorm"
    folder = home / "streamparse-5.0.1"
    if not folder.exists():
        home.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=home))
        venv.create(scratch, with_pip=True)
        pip = [str(scratch / "bin/python"), "-m", "pip", "install", "--quiet", *PACKAGES]
        done = subprocess.run(pip, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        with contextlib.suppress(OSError):  # another process was quicker
            scratch.rename(folder)
    return str(folder / "bin/python")


@pytest.fixture(scope="session")
def needed() -> Callable[[str], str]:
    """Find a program; without it a test skips, but fails in CI."""

    def find(program: str) -> str:
        found = shutil.which(program)
        if found is None and not os.environ.get("CI"):
            pytest.skip(f"there is no {program} here")
        assert found is not None, f"there is no {program} here"
        return found

    return find


@pytest.fixture(scope="session")
def node(needed: Callable[[str], str]) -> str:
    """Node.js."""
    return needed("node")


@pytest.fixture
def run_until() -> Callable[..., tuple[Any, dict[str, list[tuple[Any, ...]]]]]:
    """Run a topology in this process until a condition on its statistics holds."""

    def run(
        topology: Topology, done: Callable[[Any], bool], **config: object
    ) -> tuple[Any, dict[str, list[tuple[Any, ...]]]]:
        emitted: dict[str, list[tuple[Any, ...]]] = {}

        def tap(key: Any, task: int, rows: list[tuple[Any, ...]]) -> None:
            emitted.setdefault(key.component, []).extend(map(tuple, rows))

        runner = LocalRunner(
            topology, config=Config.parse(config), taps=topology.components, on_tap=tap
        )
        with runner:

            def is_done() -> bool:
                runner.step()
                return done(runner.statistics())

            wait_until(is_done)
            runner.run_until_idle()
            return runner.statistics(), emitted

    return run
