"""The jars that servers run from: fetched once, or taken from PySpark.

The Ivy that comes with PySpark fetches Kafka's jars from Maven Central into a cache folder (45 MB,
about 45 seconds); neither Maven nor a container is needed.
"""

import contextlib
import importlib.util
import os
import tempfile
from pathlib import Path
from typing import TypeAlias

from sparkstorm.errors import EnvironmentFault
from sparkstorm.java import find_java
from sparkstorm.testing.servers.process import run

__all__ = ["Module", "cached_jars", "pyspark_jars"]

Module: TypeAlias = tuple[str, str, str]
"""Organisation, name and version of a module of Maven Central."""


def cached_jars(name: str, modules: tuple[Module, ...]) -> str:
    """Return a class path of some modules of Maven Central, with their dependencies.

    Raises:
        EnvironmentFault: the jars cannot be fetched.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sparkstorm"
    folder = home / f"{name}-{modules[0][2]}"
    if not folder.exists():
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            _resolve(modules, Path(scratch))
            # two processes may fetch at once: the second rename fails on the finished folder
            with contextlib.suppress(OSError):
                (Path(scratch) / "jars").rename(folder)
    return f"{folder}/*"


def _resolve(modules: tuple[Module, ...], scratch: Path) -> None:
    wanted = "".join(
        f'<dependency org="{org}" name="{name}" rev="{rev}" conf="default->default"/>'
        for org, name, rev in modules
    )
    (scratch / "ivy.xml").write_text(
        '<ivy-module version="2.0"><info organisation="sparkstorm" module="servers"/>'
        f"<dependencies>{wanted}</dependencies></ivy-module>"
    )
    ivy = next(pyspark_jars().glob("ivy-*.jar"), None)
    if ivy is None:
        raise EnvironmentFault(f"PySpark's folder {pyspark_jars()} has no Ivy to fetch jars with")
    run(
        [
            *(find_java(), "-jar", str(ivy), "-ivy", str(scratch / "ivy.xml")),
            *("-cache", str(scratch / "cache"), "-types", "jar", "bundle", "-warn", "-retrieve"),
            f"{scratch}/jars/[artifact]-[revision](-[classifier]).[ext]",
        ],
        f"cannot fetch {modules[0][1]} from Maven Central (is there a network?)",
    )


def pyspark_jars() -> Path:
    """Return the folder of the jars that come with PySpark.

    Raises:
        EnvironmentFault: PySpark is not installed.
    """
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise EnvironmentFault("the server needs PySpark's jars, and PySpark is not installed")
    return Path(found.origin).parent / "jars"
