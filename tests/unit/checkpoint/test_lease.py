"""The lease of a checkpoint: who gets it, who waits, who is refused, who has lost it."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sparkstorm.batches.journal import Journal
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.checkpoint.engine_log import EngineLog
from sparkstorm.checkpoint.files import CheckpointFiles, LocalFiles, MemoryFiles
from sparkstorm.checkpoint.heartbeat import Heartbeat
from sparkstorm.checkpoint.holder import Holder
from sparkstorm.checkpoint.lease import Lease
from sparkstorm.checkpoint.seal import write_sealed
from sparkstorm.errors import CheckpointError, SupersededError
from sparkstorm.testing import ManualClock

TIMEOUT = 10.0


class Runs:
    """Runs that want the lease of one checkpoint, on one manual clock."""

    def __init__(self, files: CheckpointFiles | None = None) -> None:
        self.files = files or MemoryFiles()
        self.clock = ManualClock()
        self.dead: set[str] = set()

    def lease(self, run: str, machine: str = "") -> Lease:
        holder = Holder(run=run, host=f"host-of-{run}", machine=machine, pid=7, since=1e9)
        return Lease(self.files, self.clock, holder, TIMEOUT, died=lambda h: h.run in self.dead)


@pytest.fixture(params=["memory", "local"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointFiles:
    return MemoryFiles() if request.param == "memory" else LocalFiles(tmp_path)


class TestFiles:
    def test_create_is_exclusive(self, files: CheckpointFiles) -> None:
        """A file is created once; a second attempt is told so and changes nothing."""
        assert files.create("lease/1", b"first")
        assert not files.create("lease/1", b"second")
        assert files.read("lease/1") == b"first"
        assert files.names("lease") == ["1"]

    def test_of_many_threads_one_creates(self, tmp_path: Path) -> None:
        local, start = LocalFiles(tmp_path), threading.Barrier(8)
        won: list[int] = []

        def contend(number: int) -> None:
            start.wait()
            if local.create("lease/1", str(number).encode() * 1000):
                won.append(number)

        threads = [threading.Thread(target=contend, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert local.read("lease/1") == str(won[0]).encode() * 1000


class TestTaking:
    def test_a_second_run_is_refused_as_soon_as_the_first_shows_life(
        self, files: CheckpointFiles
    ) -> None:
        """The refusal names run, host, pid and since when."""
        runs = Runs(files)
        first, second = runs.lease("one"), runs.lease("two")
        assert first.try_acquire()
        assert not second.try_acquire()
        runs.clock.advance(first.beat_secs)
        first.renew()
        with pytest.raises(CheckpointError, match=r"run one on host host-of-one, pid 7, since"):
            second.try_acquire()

    def test_released_is_free_at_once(self, files: CheckpointFiles) -> None:
        runs = Runs(files)
        with runs.lease("one") as first:
            assert first.try_acquire()
        second = runs.lease("two")
        assert second.try_acquire()
        assert second.epoch == 2
        assert files.names("lease") == files.names("beats") == ["2"]

    def test_a_dead_process_is_succeeded_at_once(self) -> None:
        runs = Runs()
        assert runs.lease("one").try_acquire()
        runs.dead.add("one")
        assert runs.lease("two").try_acquire()

    def test_a_machine_that_is_gone_is_waited_for(self, caplog: pytest.LogCaptureFixture) -> None:
        """The lease is taken when it is stale, not before, and the waiting is said once."""
        runs = Runs()
        assert runs.lease("one").try_acquire()
        runs.clock.advance(1000.0)  # the time before somebody watches does not count
        second, before = runs.lease("two"), runs.clock.monotonic()
        second.acquire(sleep=runs.clock.advance)
        assert TIMEOUT <= runs.clock.monotonic() - before <= TIMEOUT + second.beat_secs
        assert second.epoch == 2
        assert [r.message[:37] for r in caplog.records] == ["the checkpoint was in use by run one "]

    def test_one_that_wakes_up_in_time_keeps_it(self) -> None:
        runs = Runs()
        first, second = runs.lease("one"), runs.lease("two")
        assert first.try_acquire()

        def sleep(secs: float) -> None:
            runs.clock.advance(secs)
            if runs.clock.monotonic() > TIMEOUT / 2:
                first.renew()

        with pytest.raises(CheckpointError, match="in use by run one"):
            second.acquire(sleep)
        first.check()

    def test_of_two_that_wait_one_gets_it(self) -> None:
        """The other one is refused, naming the winner."""
        runs = Runs()
        assert runs.lease("one").try_acquire()
        second, third = runs.lease("two"), runs.lease("three")
        assert not second.try_acquire()
        assert not third.try_acquire()
        runs.clock.advance(TIMEOUT)
        assert second.try_acquire()
        with pytest.raises(CheckpointError, match="in use by run two"):
            third.try_acquire()


class TestLosing:
    def superseded(self, runs: Runs) -> tuple[Lease, Lease]:
        """A run that was paused, and the one that took over."""
        first, second = runs.lease("one"), runs.lease("two")
        assert first.try_acquire()
        assert not second.try_acquire()
        runs.clock.advance(TIMEOUT)
        assert second.try_acquire()
        return first, second

    def test_the_superseded_run_is_told_by_whom(self, files: CheckpointFiles) -> None:
        first, second = self.superseded(Runs(files))
        second.check()
        for act in (first.check, first.renew):
            with pytest.raises(SupersededError, match=r"\(one\).*another.*run two on host"):
                act()
        first.release()
        second.renew()
        assert files.names("lease") == files.names("beats") == ["2"]

    def test_what_it_was_about_to_write_replaces_nothing(self) -> None:
        """Its plans carry its epoch: even one that is written late does not hide the other's."""
        runs = Runs()
        first, second = self.superseded(runs)
        mine, other = Journal(runs.files, second), Journal(runs.files, first)
        mine.write_plan(BatchPlan(number=3, run="two"))
        with pytest.raises(SupersededError):
            other.write_plan(BatchPlan(number=3, run="one"))
        write_sealed(runs.files, "plans/1-4", BatchPlan(number=4, run="one").to_json())
        last = Journal(runs.files, second).last(EngineLog(heard=3, committed=2))
        assert last is not None
        assert (last.number, last.run) == (3, "two")

    def test_the_heartbeat_says_so_and_ends(self) -> None:
        first, _ = self.superseded(Runs())
        first.beat_secs = 0.0
        told: list[SupersededError] = []
        heartbeat = Heartbeat(first, told.append)
        heartbeat.start()
        heartbeat.join(30)
        assert not heartbeat.is_alive()
        assert len(told) == 1


class TestHolder:
    def test_this_process_lives(self) -> None:
        me = Holder.here("one", 1e9)
        assert Holder.from_json(me.to_json()) == me
        assert me.is_local
        assert not me.has_died()

    @pytest.mark.process
    def test_a_process_that_was_killed_has_died(self) -> None:
        """Also while nobody has collected it yet, and although its pid still stands for it."""
        code = (
            "from sparkstorm.checkpoint.holder import Holder; import sys; "
            "print(Holder.here('one', 0.0).to_json().decode(), flush=True); sys.stdin.read()"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            holder = Holder.from_json(child.stdout.readline())
            assert holder.pid == child.pid
            assert not holder.has_died()
            child.kill()
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            assert holder.has_died()

    @pytest.mark.parametrize("change", [{"started": "1"}, {"pid": 2**22 + 1}])
    def test_another_process_with_its_pid_is_not_it(self, change: dict[str, object]) -> None:
        data = {slot: getattr(Holder.here("one", 0.0), slot) for slot in Holder.__slots__}
        assert Holder(**{**data, **change}).has_died()

    def test_nothing_is_known_of_other_machines(self) -> None:
        assert not Holder(run="one", machine="another", pid=2**22 + 1).has_died()
        assert not Holder(run="one", pid=2**22 + 1).has_died()
