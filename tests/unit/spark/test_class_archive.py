"""The class archive: where it is, and when there is none."""

from pathlib import Path

import pytest

from sparkstorm.java import find_java
from sparkstorm.spark.driver.class_archive import SWITCH, ClassArchive
from sparkstorm.spark.driver.session import java_options


@pytest.fixture
def java() -> str:
    """The Java of this machine."""
    return find_java()


def archive(java: str) -> ClassArchive:
    found = ClassArchive.find(java)
    assert found is not None
    return found


def test_a_missing_archive_is_made_and_then_used(
    java: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One name for the same Java and the same jars; the file is all there is to remove."""
    monkeypatch.setenv(SWITCH, str(tmp_path / "new"))
    assert archive(java).can_be_made
    assert archive(java).options()[0] == "-XX:+RecordDynamicDumpInfo"
    (tmp_path / "new").mkdir()
    path = tmp_path / "new" / archive(java).name
    path.write_bytes(b"")
    assert not archive(java).can_be_made
    assert archive(java).options()[0] == f"-XX:SharedArchiveFile={path}"
    path.unlink()
    assert archive(java).can_be_made


def test_other_jars_have_another_archive(
    java: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java would refuse an archive of others."""
    before = archive(java).name
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "own.jar").write_bytes(b"x")
    assert archive(java).name != before


@pytest.mark.parametrize("wish", ["off", "0", "False"])
def test_the_archive_can_be_turned_off(
    java: str, wish: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other options stay."""
    monkeypatch.setenv(SWITCH, wish)
    assert ClassArchive.find(java) is None
    assert not any("Archive" in option or "Dump" in option for option in java_options(java))
    assert any("Tier4" in option for option in java_options(java))


def test_another_kind_of_java_gets_no_options(tmp_path: Path) -> None:
    """Its options have other names."""
    other = tmp_path / "java"
    other.write_text("#!/bin/sh\necho 'openjdk version \"17.0.9\"\\nEclipse OpenJ9 VM' >&2\n")
    other.chmod(0o755)
    assert java_options(str(other)) == []
    assert ClassArchive.find(str(other)) is None


def test_a_place_that_is_no_folder_is_left_alone(
    java: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No archive, no complaint."""
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv(SWITCH, str(tmp_path / "file"))
    assert archive(java).options() == []
    assert not archive(java).make(session=None)
