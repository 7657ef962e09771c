"""Our bolts as children of a real Apache Storm, from Maven Central."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sparkstorm.java import find_java
from sparkstorm.testing import PATIENCE_SECS
from sparkstorm.testing.servers.jars import cached_jars

pytestmark = [pytest.mark.e2e, pytest.mark.process, pytest.mark.slow]

HERE = Path(__file__).parent
STORM = (("org.apache.storm", "storm-server", "2.8.3"),)
COMPILER = (("org.eclipse.jdt", "ecj", "3.33.0"),)
"""A compiler for Java that needs no JDK."""

SENTENCES = ("to be or not to be", "that is the question", "ünïcode too")


@pytest.fixture(scope="module")
def storm(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The class path of Storm and of the topology in ``storm/Words.java``."""
    classes = tmp_path_factory.mktemp("classes")
    jars = cached_jars("storm", STORM)
    listed = ":".join(map(str, Path(jars).parent.glob("*.jar")))
    compiler = "org.eclipse.jdt.internal.compiler.batch.Main"
    options = ["-17", "-nowarn", "-encoding", "UTF-8", "-cp", listed, "-d", str(classes)]
    source = str(HERE / "storm" / "Words.java")
    java = [find_java(), "-cp", cached_jars("ecj", COMPILER), compiler]
    subprocess.run([*java, *options, source], check=True)
    return f"{classes}:{jars}"


@pytest.mark.parametrize("name", ["Split", "AckLate"])
def test_a_bolt_of_ours_counts_exactly_under_storm(storm: str, name: str) -> None:
    """Every sentence is acked, every word counted once, whether it acks at once or in batches."""
    child = [
        sys.executable,
        "-m",
        "sparkstorm",
        "multilang",
        f"{HERE / 'storm' / 'words.py'}:{name}",
    ]
    command = [find_java(), "-Dfile.encoding=UTF-8", "-cp", storm, "Words", "3000", *child]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=PATIENCE_SECS)
    counted = re.search(r"^COUNTS (.*)$", done.stdout, re.MULTILINE)
    assert counted is not None, done.stdout[-3000:] + done.stderr[-3000:]
    counts = dict(pair.split("=") for pair in counted[1].split())
    words = [word for sentence in SENTENCES for word in sentence.split()]
    assert counts == {word: str(1000 * words.count(word)) for word in words}
