"""Whatever a power failure or a bad disk leaves of a file: a restart goes on rightly, or says so.

Each file under ``sparkstorm/`` is damaged in turn, in each life of a batch. Right is: every message
is acked or a dead letter, and with exactly-once batches each is applied once. Else a
``CheckpointError`` names the file and the mend, or an error line does if it is one of dead letters.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sparkstorm as ss
from sparkstorm.batches.journal import Journal
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.checkpoint.engine_log import EngineLog
from sparkstorm.checkpoint.files import LocalFiles, MemoryFiles
from sparkstorm.checkpoint.holder import Holder
from sparkstorm.checkpoint.identity import identity_of
from sparkstorm.checkpoint.lease import Lease, Unfenced
from sparkstorm.checkpoint.seal import BrokenSealError, seal, unseal
from sparkstorm.dead_letters import LetterStore
from sparkstorm.dead_letters.requests import RequestBox
from sparkstorm.errors import CheckpointError
from sparkstorm.testing import LocalRunner, ManualClock, MemorySink

TOTAL, BAD = 12, 1
LIVES = ["planned", "decided", "committed"]
CUTS: dict[str, Callable[[bytes], bytes]] = {
    "zero": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "all but one": lambda data: data[:-1],
    "zeros": lambda data: bytes(len(data)),
    "changed": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
}


class Numbers(ss.PartitionedSpout):
    """Twelve numbers, two in a split."""

    outputs = "n long"
    replayable = True
    acked: ClassVar[set[int]] = set()

    def __init__(self) -> None:
        self.planned = 0

    def plan(self, limit: int) -> list[ss.Split]:
        if self.exhausted():
            return []
        self.planned += 2
        return [ss.Split(count=2, data={"from": self.planned - 2})]

    def read(self, split: ss.Split) -> list[tuple[int]]:
        return [(split.data["from"] + n,) for n in range(2)]

    def msg_id(self, split: ss.Split, position: int) -> int:
        picked = split.only[position] if split.only is not None else position
        return int(split.data["from"] + picked)

    def ack(self, split: ss.Split, positions: Any) -> None:
        for start, stop in positions:
            self.acked.update(self.msg_id(split, place) for place in range(start, stop))

    def snapshot(self) -> int:
        return self.planned

    def restore(self, snapshot: int) -> None:
        self.planned = snapshot

    def exhausted(self) -> bool:
        return self.planned >= TOTAL


class Refuse(ss.BasicBolt):
    """Fails one number for ever."""

    outputs = "n long"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["n"] == BAD:
            raise ValueError("bad")
        collector.emit([tup["n"]])


class World:
    """A checkpoint whose driver died in its third batch, and what is outside of it."""

    def __init__(self, folder: Path, *, once: bool, life: str) -> None:
        Numbers.acked.clear()
        self.folder = folder
        self.files = LocalFiles(folder, fsync=False)
        self.sink = MemorySink()
        self.once = once
        self.clock = ManualClock()
        first = self.runner()
        first.__enter__()
        first.step()
        first.step()
        if not once:
            store = LetterStore(self.files)
            RequestBox(store).ask(list(store.letters()), wall=1.0)
        assert first.plan_batch()
        if life != "planned":
            assert first.finish(first.run_job())
        if life == "committed":
            first.apply()
            first.commit()

    def runner(self) -> LocalRunner:
        builder = ss.TopologyBuilder()
        builder.set_spout("numbers", Numbers())
        builder.set_bolt("refuse", Refuse()).shuffle_grouping("numbers")
        if self.once:
            builder.set_bolt("sink", self.sink).shuffle_grouping("refuse")
        config = ss.Config(
            processing_guarantee="exactly-once" if self.once else "at-least-once",
            batch_min_messages=4,
            batch_max_messages=4,
            max_retries=0,
            retry_backoff_secs=0,
        )
        return LocalRunner(
            builder.create_topology(), config=config, clock=self.clock, files=self.files
        )

    def restart(self) -> None:
        """Run to the end; then everything must be right."""
        with self.runner() as runner:
            runner.run_until_idle()
        assert Numbers.acked | {BAD} == set(range(TOTAL))
        assert list(self.folder.rglob("*.jsonl"))
        if self.once:
            assert sorted(self.sink.rows) == [(n,) for n in range(TOTAL) if n != BAD]

    def names(self) -> list[str]:
        paths = (path for path in self.folder.rglob("*") if path.is_file())
        return sorted(str(path.relative_to(self.folder)) for path in paths)


def damages() -> Iterator[Any]:
    """Each file that is there, by the way it is damaged."""
    for once in (False, True):
        for life in LIVES:
            for cut in CUTS:
                name = f"{'exactly' if once else 'at-least'}-once, {life}: {cut}"
                yield pytest.param(once, life, cut, id=name)


def is_named(name: str, said: str) -> bool:
    """Whether a text names a file, and something that people can do."""
    mends = ("Restore it", "restore the whole", "Delete it", "Mend the line", "delete")
    return name in said and any(mend in said for mend in mends)


def check_damaged(
    world: World, name: str, cut: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    """Damage a file; the restart must be right, or name it."""
    file = world.folder / name
    file.write_bytes(cut(file.read_bytes()) if file.stat().st_size else b"x")
    said = ""
    try:
        world.restart()
        if name.endswith(".jsonl"):
            list(LetterStore(world.files).letters())
    except CheckpointError as error:
        said = str(error)
    if said or name.startswith("dead-letters/"):
        assert is_named(name, said or caplog.text), (name, said or caplog.text)


@pytest.mark.sweep
@pytest.mark.parametrize(("once", "life", "cut"), list(damages()))
def test_each_damaged_file_is_mended_or_named(
    tmp_path: Path, once: bool, life: str, cut: str, caplog: pytest.LogCaptureFixture
) -> None:
    names = World(tmp_path / "list", once=once, life=life).names()
    kinds = {name.split("/")[0] for name in names}
    assert {"plans", "dead-letters", "local", "lease"} <= kinds
    assert ("decisions" in kinds, "identity" in kinds) == (once and life != "planned", once)
    for number in range(len(names)):
        world = World(tmp_path / str(number), once=once, life=life)
        caplog.clear()
        check_damaged(world, world.names()[number], CUTS[cut], caplog)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("life", LIVES)
def test_stray_files_are_told_of_and_ignored(
    tmp_path: Path, life: str, once: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A copy that somebody made, what an editor left, and a temporary file of a dead driver."""
    world = World(tmp_path, once=once, life=life)
    for folder in ("plans", "outcomes", "decisions", "lease", "beats", "dead-letters"):
        (tmp_path / folder).mkdir(exist_ok=True)
        for stray in ("0-4.bak", "README", ".tmp1a2b", "007-9"):
            (tmp_path / folder / stray).write_bytes(b"half a")
    world.restart()
    assert "sparkstorm/plans/0-4.bak is none of sparkstorm's" in caplog.text
    assert ".tmp1a2b" not in caplog.text


# --- the newest plan ---------------------------------------------------------------------------


def journal_of(*plans: tuple[int, int], **others: str) -> Journal:
    """A journal with these plans, the last of them torn, and other files."""
    files = MemoryFiles()
    for epoch, number in plans:
        data = seal(BatchPlan(number=number, run=str(epoch)).to_json())
        torn = (epoch, number) == plans[-1]
        files.write(f"plans/{epoch}-{number}", data[: len(data) // 2] if torn else data)
    for folder, name in others.items():
        files.write(f"{folder}/{name}", seal(b"{}"))
    files.create("lease/8", b"")
    return Journal(files, Unfenced(files))


def test_a_torn_plan_that_spark_never_heard_of_is_ignored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It was just being written; the one before it is what Spark is at."""
    last = journal_of((1, 3), (1, 4)).last(EngineLog(heard=3, committed=3))
    assert last is not None
    assert last.number == 3
    assert "sparkstorm/plans/1-4 is damaged" in caplog.text
    assert "No batch was run by it" in caplog.text


def test_the_first_plan_of_all_may_be_torn() -> None:
    assert journal_of((1, 0)).last(EngineLog()) is None


def test_a_torn_plan_of_a_batch_that_is_run_again_is_ignored() -> None:
    """A new driver was writing down how it runs its predecessor's batch: that plan is whole."""
    last = journal_of((1, 4), (2, 4)).last(EngineLog(heard=4, committed=3))
    assert last is not None
    assert last.run == "1"


@pytest.mark.parametrize(
    ("journal", "log"),
    [
        pytest.param(journal_of((1, 3), (1, 4)), EngineLog(4, 3), id="Spark knows it"),
        pytest.param(journal_of((1, 0)), EngineLog(0, -1), id="Spark knows the first"),
        pytest.param(journal_of((1, 4), (2, 4)), EngineLog(4, 4), id="Spark has committed it"),
        pytest.param(journal_of((1, 3), (1, 4), outcomes="1-4"), EngineLog(3, 3), id="outcome"),
        pytest.param(journal_of((1, 3), (1, 4), decisions="1-4"), EngineLog(3, 3), id="decision"),
    ],
)
def test_a_torn_plan_that_was_used_is_refused(journal: Journal, log: EngineLog) -> None:
    with pytest.raises(CheckpointError, match=r"plans/\d-\d is damaged.*estore .*another"):
        journal.last(log)


def test_spark_that_has_lost_committed_batches_is_refused() -> None:
    """It does not force its files to the disk; acks were given that are in no state any more."""
    with pytest.raises(CheckpointError, match=r"batch 3 was committed.*batch 1 is the last"):
        journal_of((1, 3), (1, 4), (2, 5)).last(EngineLog(heard=2, committed=1))


@pytest.mark.parametrize(("settled", "committed"), [(False, 3), (True, 4)])
def test_the_last_word_of_a_driver_says_what_is_committed(settled: bool, committed: int) -> None:
    """A batch that waits to be committed may be lost there; not one whose verdicts were given."""
    files = MemoryFiles()
    journal = Journal(files, Unfenced(files))
    journal.write_plan(BatchPlan(number=4, run="one", clean=True, settled=settled))
    assert journal.last(EngineLog(heard=4, committed=committed)) is not None
    with pytest.raises(CheckpointError, match=f"batch {committed} was committed and its messages"):
        journal.last(EngineLog(heard=4, committed=committed - 1))


def test_plans_that_are_gone_are_missed() -> None:
    with pytest.raises(CheckpointError, match=r"Spark knows of batch 7, but there is no plan"):
        Journal(files := MemoryFiles(), Unfenced(files)).last(EngineLog(heard=7, committed=6))


# --- lease, identity, seal ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lease/1", "beats/1"])
@pytest.mark.parametrize("cut", CUTS)
def test_a_damaged_lease_is_free_when_it_is_stale(tmp_path: Path, name: str, cut: str) -> None:
    """Nothing is known of its holder any more, so it is waited for, and then succeeded."""
    files, clock = LocalFiles(tmp_path, fsync=False), ManualClock()
    assert Lease(files, clock, Holder(run="one"), 10.0).try_acquire()
    data = files.read(name)
    assert data is not None
    files.write(name, CUTS[cut](data))
    second, before = Lease(files, clock, Holder(run="two"), 10.0), clock.monotonic()
    second.acquire(sleep=clock.advance)
    assert second.epoch == 2
    assert clock.monotonic() - before >= 10.0


def test_an_identity_lasts_whatever_is_in_its_file(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path, fsync=False)
    name = identity_of(files)
    files.write(f"identity/{name}", b"\x00\x00")
    assert identity_of(files) == name
    files.write(f"identity/{name}.bak", b"")
    with pytest.raises(CheckpointError, match=rf"{name}, {name}.bak: remove what was put there"):
        identity_of(files)


@given(st.binary(max_size=60), st.data())
def test_no_changed_byte_passes_a_seal(content: bytes, data: st.DataObject) -> None:
    sealed = bytearray(seal(content))
    assert unseal(bytes(sealed)) == content
    place = data.draw(st.integers(0, len(sealed) - 1))
    change = data.draw(st.integers(1, 255))
    cut = data.draw(st.integers(0, len(sealed) - 1))
    sealed[place] ^= change
    for damaged in (bytes(sealed), seal(content)[:cut], seal(content) + b"x"):
        with pytest.raises(BrokenSealError):
            unseal(damaged)


@pytest.mark.sweep
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    once=st.booleans(),
    life=st.sampled_from(LIVES),
    which=st.integers(0, 20),
    place=st.floats(0, 1, exclude_max=True),
    change=st.integers(1, 255),
)
def test_any_changed_byte_is_mended_or_named(
    tmp_path_factory: pytest.TempPathFactory,
    caplog: pytest.LogCaptureFixture,
    once: bool,
    life: str,
    which: int,
    place: float,
    change: int,
) -> None:
    def changed(data: bytes) -> bytes:
        at = int(place * len(data))
        return data[:at] + bytes([data[at] ^ change]) + data[at + 1 :]

    world = World(tmp_path_factory.mktemp("world"), once=once, life=life)
    names = world.names()
    caplog.clear()
    check_damaged(world, names[which % len(names)], changed, caplog)
