"""Temporary folders go with the driver that made them, even if it was killed; no others do."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sparkstorm.checkpoint.holder import Holder
from sparkstorm.checkpoint.scratch import make_folder, remove_abandoned

MAKE = """
import sys
from sparkstorm.checkpoint.scratch import make_folder
folder = make_folder("word-count")
(folder / "deep").mkdir()
(folder / "deep" / "file").write_text("state")
(folder / "deep" / "link").symlink_to(sys.argv[1])
(folder / "link").symlink_to(sys.argv[1], target_is_directory=True)
print(folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep temporary files in a folder of the test's own, and no others in sight."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


needs_proc = pytest.mark.skipif(
    not Holder.here("", 0.0).machine, reason="no /proc: nobody is seen to have died here"
)


@pytest.mark.process
@needs_proc
def test_a_killed_drivers_folder_goes_and_what_it_links_to_stays(tmp_path: Path) -> None:
    """Not while the driver lives; and nothing behind a link is touched."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    driver = subprocess.Popen(
        [sys.executable, "-c", MAKE, str(precious)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with driver:
        assert driver.stdout is not None
        folder = Path(driver.stdout.readline().strip())
        remove_abandoned()
        assert (folder / "deep" / "file").read_text() == "state"
        driver.kill()
        driver.wait()
    remove_abandoned()
    assert not folder.exists()
    assert (precious / "file").read_text() == "mine"


@needs_proc
def test_nothing_else_goes(temp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of this process, of other machines and programs, of no known maker; and links."""
    mine = make_folder("state")
    pid, started, machine, _ = mine.name.split("-")[-4:]
    dead = f"{pid}-{int(started) + 1}"
    kept = [
        mine,
        temp / f"sparkstorm-state-{dead}-00000000-abcdefgh",
        temp / f"other-{dead}-{machine}-abcdefgh",
        temp / f"sparkstorm-{dead}",
        temp / "sparkstorm-abcdefgh",
        temp / f"sparkstorm-{dead}-{machine}-abcdefgh.log",
    ]
    for folder in kept[1:-1]:
        folder.mkdir()
    kept[-1].write_text("a file of such a name")
    target = temp / "target"
    target.mkdir()
    linked = temp / f"sparkstorm-linked-{dead}-{machine}-abcdefgh"
    linked.symlink_to(target, target_is_directory=True)
    gone = temp / f"sparkstorm-name-with-{dead}-{machine}-abcd_fgh"
    gone.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    remove_abandoned()
    assert gone.exists(), "another user's: his processes may not be seen from here"
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "tempdir", str(temp))
    remove_abandoned()
    assert not gone.exists()
    assert all(path.exists() for path in [*kept, target, linked])


def test_a_folder_is_this_users_alone(temp: Path) -> None:
    """It lies among the temporary files, under a name that says what it is for."""
    folder = make_folder("word-count")
    assert folder.parent == temp
    assert folder.name.startswith("sparkstorm-word-count-")
    assert folder.stat().st_mode & 0o777 == 0o700
