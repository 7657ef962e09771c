"""Java is found, or one sentence says what is missing."""

from pathlib import Path

import pytest

from sparkstorm.errors import EnvironmentFault
from sparkstorm.java import find_java


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty JAVA_HOME."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    return tmp_path


def install(home: Path, version: str) -> Path:
    """Put a program there that says it is a Java of this version."""
    java = home / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize("version", ["17", "17.0.15", "21-ea", "unheard of"])
def test_the_java_of_java_home(home: Path, version: str) -> None:
    """It is taken if it is new enough; one of a version that nobody can read has its chance."""
    java = install(home, version)
    assert find_java() == str(java)


@pytest.mark.parametrize(("version", "major"), [("1.8.0_412", 8), ("11.0.2", 11)])
def test_a_java_that_is_too_old(home: Path, version: str, major: int) -> None:
    """The sentence names it, and what is needed."""
    java = install(home, version)
    with pytest.raises(EnvironmentFault, match=f"Java 17 or later, but {java} is version {major}"):
        find_java()


def test_no_java(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence says where it was looked for."""
    with pytest.raises(EnvironmentFault, match=f"JAVA_HOME is {home}, which has no bin/java"):
        find_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(home))
    with pytest.raises(EnvironmentFault, match="no java on the PATH"):
        find_java()
