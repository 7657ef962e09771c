"""A real Apache Storm from Maven Central, its adapters, and the word count with children on it."""

import re
import subprocess
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import final

from sparkstorm.java import find_java
from sparkstorm.testing.servers.jars import cached_jars

__all__ = ["StormCount", "count_on_storm", "put_adapters"]

STORM = (("org.apache.storm", "storm-server", "2.8.3"),)
ADAPTERS = tuple(
    ("org.apache.storm", f"multilang-{language}", "2.8.3") for language in ("python", "javascript")
)
COMPILER = (("org.eclipse.jdt", "ecj", "3.33.0"),)
"""A compiler for Java that needs no JDK."""

_SOURCE = Path(__file__).parents[1] / "multilang" / "storm" / "Words.java"


@final
@dataclass(frozen=True, slots=True)
class StormCount:
    """What Storm counted, and how many sentences a second it acked after the first fifth."""

    counts: dict[str, int]
    rate: float


def put_adapters(folder: Path) -> None:
    """Put the adapters that Apache Storm publishes, storm.py and storm.js, into a folder."""
    for jar in Path(cached_jars("storm-adapters", ADAPTERS)).parent.glob("multilang-*.jar"):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.startswith("resources/storm."):
                    (folder / Path(name).name).write_bytes(archive.read(name))
    assert {path.name for path in folder.iterdir()} == {"storm.py", "storm.js"}


def count_on_storm(
    sentences: Path, limit: int, split: Sequence[str], count: Sequence[str] = (), *, secs: float
) -> StormCount:
    """Count the words of sentences on a local cluster of Storm.

    Args:
        sentences: a file with a sentence a line.
        limit: how many sentences to emit, in turns.
        split: the command of the splitting bolt.
        count: the command of the counting bolt; without one Storm counts itself.
        secs: how long that may take.
    """
    commands = [*split, *(["--", *count] if count else [])]
    java = [find_java(), "-Dfile.encoding=UTF-8", "-cp", _class_path(), "Words"]
    done = subprocess.run(
        [*java, str(sentences), str(limit), *commands],
        capture_output=True,
        encoding="utf-8",
        timeout=secs,
        check=False,
    )
    counted = re.search(r"^COUNTS (.*)\nRATE (.*)$", done.stdout, re.MULTILINE)
    if counted is None:
        raise RuntimeError(done.stdout[-3000:] + done.stderr[-3000:])
    pairs = (pair.rpartition("=") for pair in counted[1].split())
    return StormCount({word: int(number) for word, _, number in pairs}, float(counted[2]))


@lru_cache
def _class_path() -> str:
    classes, jars = mkdtemp(prefix="sparkstorm-storm-"), cached_jars("storm", STORM)
    listed = ":".join(map(str, Path(jars).parent.glob("*.jar")))
    compiler = "org.eclipse.jdt.internal.compiler.batch.Main"
    options = ["-17", "-nowarn", "-encoding", "UTF-8", "-cp", listed, "-d", classes]
    java = [find_java(), "-cp", cached_jars("ecj", COMPILER), compiler]
    subprocess.run([*java, *options, str(_SOURCE)], check=True)
    return f"{classes}:{jars}"
