"""Kept processes: one keeper per node and run, its children, and who may end them."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkstorm.components.processes import ProcessSpec
from sparkstorm.errors import ProcessLostError
from sparkstorm.processes.client import (
    AttachedProcess,
    KeeperClient,
    describe_exit,
    end_keeper,
    folder_of,
)
from sparkstorm.processes.owner import owner_of_worker
from sparkstorm.testing import wait_until

pytestmark = pytest.mark.process

CAT = ProcessSpec(command=["cat"], env=dict(os.environ))


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"test {os.getpid()} {request.node.name}"
    yield name
    end_keeper(name)
    wait_until(lambda: not folder_of(name).exists())  # a keeper may be about to end by itself


@pytest.fixture
def node(run: str) -> KeeperClient:
    return KeeperClient(run, os.getpid())


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def read(process: AttachedProcess, count: int) -> bytes:
    """Read so many bytes of output, what is read again first."""
    data = b""
    while len(data) < count:
        output = process.wait(10.0)
        assert output.exit is None, output
        data += output.again + output.data
    return data


def shell(script: str) -> ProcessSpec:
    return ProcessSpec(command=["sh", "-c", script], env=dict(os.environ))


def test_a_process_outlives_its_attachments(node: KeeperClient) -> None:
    first = node.attach("a/0", CAT, 0)
    assert (first.is_new, first.attachment) == (True, 1)
    first.write(b"hello")
    assert read(first, 5) == b"hello"
    first.detach()
    second = node.attach("a/0", CAT, 1)
    assert (second.is_new, second.attachment) == (False, 2)
    assert (second.pid, second.identity) == (first.pid, first.identity)
    second.detach()


def test_tasks_have_processes_of_their_own(node: KeeperClient) -> None:
    one, two = node.attach("a/0", CAT, 0), node.attach("a/1", CAT, 0)
    assert one.identity != two.identity
    one.detach()
    two.detach()


def test_more_bytes_than_any_pipe_holds_go_both_ways(node: KeeperClient) -> None:
    process = node.attach("a/0", CAT, 0)
    data = os.urandom(20_000_000)
    process.write(data)
    assert read(process, len(data)) == data
    process.detach()


def test_a_next_run_of_the_batch_reads_output_again(node: KeeperClient) -> None:
    """And the next batch gets what was begun, and nothing that was read."""
    process = node.attach("a/0", CAT, 0)
    process.write(b"done half")
    read(process, 9)
    process.detach(unread=4)
    process = node.attach("a/0", CAT, 0)
    output = process.wait(10.0)
    assert output.again == b"done "
    assert output.data or read(process, 4) == b"half"
    process.detach(unread=4)
    process = node.attach("a/0", CAT, 1)
    assert read(process, 4) == b"half"
    process.detach()


def test_input_that_is_not_written_at_a_detach_goes_on(node: KeeperClient) -> None:
    """The keeper writes it, or hands it to the next attachment, which writes it first."""
    data = os.urandom(3_000_000)
    process = node.attach("a/0", shell("read x; cat"), 0)
    process.write(data)
    process.detach()
    process = node.attach("a/0", CAT, 1)
    process.write(b"go")
    process.detach()
    process = node.attach("a/0", CAT, 2)
    expected = data[data.index(b"\n") + 1 :] + b"go"
    assert read(process, len(expected)) == expected
    process.detach()


def test_no_output_is_lost_between_attachments(node: KeeperClient) -> None:
    """Whenever it comes: before the last look, behind it, or while nobody is there."""
    heard = b""
    for batch in range(50):
        process = node.attach("a/0", CAT, batch)
        process.write(b"%d\n" % batch)
        heard += process.wait(0.0).data
        process.detach()
    process = node.attach("a/0", CAT, 50)
    expected = b"".join(b"%d\n" % batch for batch in range(50))
    assert heard + read(process, len(expected) - len(heard)) == expected
    process.detach()


def test_output_outside_of_a_batch_fills_no_disk(node: KeeperClient) -> None:
    """A spout's child may talk for weeks."""
    process = node.attach("a/0", CAT, -1)
    data = os.urandom(1_000_000)
    process.write(data)
    assert read(process, len(data)) == data
    assert process._pipes is not None
    assert os.fstat(process._pipes._files["journal"].fileno()).st_size == 0
    process.detach()
    process = node.attach("a/0", CAT, -1)
    process.write(b"x")
    assert read(process, 1) == b"x"
    process.detach()


@pytest.mark.parametrize("pipe", ["<&-", ">&-", "2>&-"])
def test_a_process_may_close_its_pipes(node: KeeperClient, pipe: str) -> None:
    """It runs on, in this attachment and in the next."""
    process = node.attach("a/0", shell(f"exec {pipe}; sleep 1000"), 0)
    process.write(b"x" * 100)
    assert process.wait(0.3).exit is None
    process.detach()
    process = node.attach("a/0", CAT, 1)
    process.write(b"x")
    assert not process.is_new
    assert process.wait(0.1).exit is None
    process.kill()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc")
def test_attachments_leave_no_descriptor_open(node: KeeperClient) -> None:
    node.attach("a/0", CAT, 0).detach()
    before = os.listdir("/proc/self/fd")
    for batch in range(1, 20):
        node.attach("a/0", CAT, batch).detach()
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_an_attachment_that_breaks_ends_the_process(node: KeeperClient) -> None:
    """Nobody knows what was read of its output."""
    broken = node.attach("a/0", CAT, 0)
    broken._close()
    wait_until(lambda: not is_running(broken.pid))
    process = node.attach("a/0", CAT, 0)
    assert process.is_new
    process.detach()


def test_a_newer_attachment_cuts_an_older_one_off(node: KeeperClient) -> None:
    older = node.attach("a/0", CAT, 0)
    newer = node.attach("a/0", CAT, 0)
    assert newer.identity != older.identity
    with pytest.raises(ProcessLostError, match="another run of this task"):
        older.wait(10.0)
    newer.write(b"x")
    assert read(newer, 1) == b"x"
    newer.detach()


def test_the_end_of_a_process_is_told_behind_its_last_output(node: KeeperClient) -> None:
    process = node.attach("a/0", shell("echo last words; echo why >&2; exit 3"), 0)
    data, errors, code = b"", b"", None
    while code is None:
        output = process.wait(10.0)
        data, errors, code = data + output.data, errors + output.errors, output.exit
    assert (data, errors, code) == (b"last words\n", b"why\n", 3)
    process.kill()


def test_how_a_process_ended_while_nobody_was_there_is_told_later(node: KeeperClient) -> None:
    process = node.attach("a/0", shell("read x; echo why >&2; exit 3"), 0)
    process.write(b"go\n")
    process.detach()
    wait_until(lambda: not is_running(process.pid) or is_zombie(process.pid))
    process = node.attach("a/0", CAT, 1)
    assert (process.is_new, process.ended) == (True, "exit code 3: why")
    process.detach()


def is_zombie(pid: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # it is gone altogether
        return False


def test_standard_error_is_drained_while_nobody_is_there(node: KeeperClient) -> None:
    """Far more than a pipe holds: a child that writes it would block."""
    script = "read x; head -c 1000000 /dev/zero >&2; echo through; cat"
    process = node.attach("a/0", shell(script), 0)
    process.write(b"go\n")
    process.detach()
    process = node.attach("a/0", CAT, 1)
    assert read(process, 8) == b"through\n"
    process.detach()


def test_a_program_that_is_not_there_is_told_with_the_command(node: KeeperClient) -> None:
    with pytest.raises(ProcessLostError, match=r"'no-such-program' cannot be started on .*--fast"):
        node.attach("a/0", ProcessSpec(command=["no-such-program", "--fast"], env={}), 0)


def test_killing_a_process_takes_what_it_has_started_with_it(
    node: KeeperClient, tmp_path: Path
) -> None:
    file = tmp_path / "pid"
    process = node.attach("a/0", shell(f"sleep 1000 & echo $! > {file}; echo up; wait"), 0)
    read(process, 3)
    process.kill()
    grandchild = int(file.read_text())
    wait_until(lambda: not is_running(grandchild))


def test_all_end_when_their_owner_has_ended(run: str) -> None:
    """However it ended: nobody says so to the keeper."""
    owner = subprocess.Popen(["sleep", "1000"])
    process = KeeperClient(run, owner.pid).attach("a/0", shell("trap '' TERM; sleep 1000"), 0)
    process.detach()
    assert is_running(process.pid)
    owner.kill()
    owner.wait()
    wait_until(lambda: not is_running(process.pid))


def test_a_child_dies_with_a_keeper_that_is_killed(node: KeeperClient) -> None:
    process = node.attach("a/0", shell("trap '' TERM HUP; sleep 1000 & wait"), 0)
    process.detach()
    keeper = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(keeper, signal.SIGKILL)
    wait_until(lambda: not is_running(process.pid))
    process = node.attach("a/0", CAT, 0)  # and another keeper is started
    assert process.is_new
    process.detach()


def test_a_child_gets_the_end_of_its_input_and_a_little_time(
    node: KeeperClient, run: str, tmp_path: Path
) -> None:
    file = tmp_path / "farewell"
    process = node.attach("a/0", shell(f"echo up; cat > /dev/null; echo bye > {file}"), 0)
    read(process, 3)
    process.detach()
    end_keeper(run)
    assert file.read_text() == "bye\n"
    assert not is_running(process.pid)


def test_many_workers_that_come_at_once_start_one_keeper(run: str) -> None:
    found: list[int] = []

    def attach(number: int) -> None:
        process = KeeperClient(run, os.getpid()).attach(f"a/{number}", CAT, 0)
        stat = Path(f"/proc/{process.pid}/stat").read_text()
        found.append(int(stat.rpartition(")")[2].split()[1]))
        process.detach()

    threads = [threading.Thread(target=attach, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(found), len(set(found))) == (8, 1)


def test_a_folder_of_the_run_is_filled_once_and_goes_with_it(node: KeeperClient, run: str) -> None:
    fillings: list[Path] = []

    def fill(place: Path) -> None:
        fillings.append(place)
        (place / "file").write_text("x")

    folder = node.folder("mine", fill)
    assert node.folder("mine", fill) == folder
    assert (len(fillings), (folder / "file").read_text()) == (1, "x")
    node.attach("a/0", CAT, 0).detach()
    end_keeper(run)
    assert not folder.exists()


def test_strangers_get_nothing(node: KeeperClient, run: str) -> None:
    """Who does not know the token is turned away, and the folder is nobody else's."""
    process = node.attach("a/0", CAT, 0)
    folder = folder_of(run)
    assert folder.stat().st_mode & 0o077 == 0
    token = (folder / "token").read_text()
    (folder / "token").write_text("guess")
    with pytest.raises(ProcessLostError, match="let go"):
        node.attach("a/0", CAT, 0)
    (folder / "token").write_text(token)
    process.detach()


def test_a_long_path_for_temporary_files_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    process = KeeperClient("long", os.getpid()).attach("a/0", CAT, 0)
    process.detach()
    end_keeper("long")


def test_the_owner_of_a_process_that_no_jvm_started_is_the_process_itself() -> None:
    program = (
        "from sparkstorm.processes.owner import owner_of_worker; import os; "
        "print(owner_of_worker() == os.getpid())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr
    assert owner_of_worker() > 0


@pytest.mark.parametrize(
    ("code", "errors", "text"),
    [(0, "", "exit code 0"), (-15, "", "killed by signal 15"), (1, "a\nb\n", "exit code 1: b")],
)
def test_an_end_is_described(code: int, errors: str, text: str) -> None:
    assert describe_exit(code, errors) == text
