"""The tables of a checkpoint, from files in memory that a run in this process has written."""

from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.batches.drive import obey
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.checkpoint.files import LocalFiles, MemoryFiles
from sparkstorm.checkpoint.manifest import Manifest
from sparkstorm.checkpoint.seal import write_sealed
from sparkstorm.sources.planned import Outstanding
from sparkstorm.spark.tables.desk import Desk, ask
from sparkstorm.spark.tables.last_plan import LastPlan
from sparkstorm.spark.tables.messages import groups_of
from sparkstorm.spark.tables.partitions import partition_rows
from sparkstorm.spark.tables.pieces import Piece
from sparkstorm.spark.tables.places import Place
from sparkstorm.spouts import LinesSpout
from sparkstorm.testing import FeederSpout, LocalRunner, ManualClock


class Parse(ss.BasicBolt):
    outputs = "n long"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([int(tup[0])])


def runner_of(spout: Any, files: MemoryFiles, **config: Any) -> LocalRunner:
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", spout)
    builder.set_bolt("parse", Parse()).shuffle_grouping("lines")
    clock = ManualClock()
    return LocalRunner(
        builder.create_topology(), files=files, clock=clock, config=ss.Config(**config)
    )


def messages(files: MemoryFiles) -> list[tuple[Any, ...]]:
    """State, attempt, component and offset of each message."""
    last = LastPlan.read(files)
    assert last is not None
    pieces = [Piece.from_json(group.message().to_json()) for group in groups_of(last)]
    rows = [row for piece in pieces for row in piece.rows()]
    return sorted((row[2], row[3], row[7], row[-1]) for row in rows)


def test_messages_from_the_plan_to_the_retry(tmp_path: Path) -> None:
    """A batch that is planned runs; one that has ended has verdicts; a later plan tells retries."""
    text, files = tmp_path / "in.txt", MemoryFiles()
    text.write_text("1\ntwo\n3\n")
    with runner_of(LinesSpout(text), files, retry_backoff_secs=60.0) as runner:
        assert LastPlan.read(files) is None
        runner.ask_spouts()
        runner.plan_batch()
        assert messages(files) == [("running", 1, None, n) for n in (1, 2, 3)]
        obey(runner.drive(), runner.perform)
        assert messages(files) == [("failed", 1, "parse", 2)]
        runner.commit()
        assert messages(files) == [("failed", 1, "parse", 2)]
        with text.open("a") as file:
            file.write("4\n")
        assert runner.step()
        assert messages(files) == [("waiting", 2, "parse", 2)]
    assert messages(files) == [("waiting", 2, "parse", 2)]


def test_messages_of_the_driver_have_no_place() -> None:
    files, spout = MemoryFiles(), FeederSpout("text string")
    with runner_of(spout, files) as runner:
        spout.feed(["1"], msg_id=1)
        runner.ask_spouts()
        runner.plan_batch()
        assert messages(files) == [("running", 1, None, None)]


def test_an_untracked_message_is_no_row() -> None:
    files, spout = MemoryFiles(), FeederSpout("text string")
    with runner_of(spout, files) as runner:
        spout.feed(["1"])
        runner.ask_spouts()
        runner.plan_batch()
        assert messages(files) == []


def test_partitions_of_kafka() -> None:
    """The oldest message that is not done holds the partition back, with its failure."""
    failure = ss.Failure(reason=ss.Reason.ERROR, component="parse", message="ValueError: two")
    data = {"topic": "orders", "partition": 3, "start": 100}
    progress = {"id": "x", "held": False, "point": 102, "emitted_to": 110, "epoch": 1, "done": []}
    plan = BatchPlan(
        number=7,
        run="r",
        cursors={"lines/0": {"topology_id": "t", "partitions": {"orders": {"3": progress}}}},
        outstanding=(
            Outstanding(
                owner="lines/0", split=ss.Split(count=2, data=data, only=(5, 9)), attempt=1
            ),
            Outstanding(
                owner="lines/0",
                split=ss.Split(count=1, data=data, only=(2,)),
                attempt=4,
                failure=failure,
            ),
        ),
    )
    files = MemoryFiles()
    write_sealed(files, "plans/1-7", plan.to_json())
    last = LastPlan.read(files)
    assert last is not None
    (row,) = [tuple(piece.values) for piece in partition_rows(last, ())]
    assert row == ("lines", "orders/3", 102, 110, 3, 1, 0, 102, "parse", "ValueError: two")
    assert messages(files) == [
        ("held", 1, None, 105),
        ("held", 1, None, 109),
        ("waiting", 4, "parse", 102),
    ]


def test_a_plan_that_is_deleted_meanwhile_has_a_successor() -> None:
    """The run deletes the listed plan before it is read: the newer plan counts."""

    class Purged:
        """Files whose run goes on between a listing and a read."""

        def __init__(self) -> None:
            self.inner = MemoryFiles()
            self.plan(1)

        def plan(self, number: int) -> None:
            data = BatchPlan(number=number, run="r").to_json()
            write_sealed(self.inner, f"plans/1-{number}", data)

        def names(self, folder: str) -> list[str]:
            return self.inner.names(folder)

        def read(self, name: str) -> bytes | None:
            if name == "plans/1-1":
                self.plan(12)
                self.inner.delete(name)
            return self.inner.read(name)

        def write(self, name: str, data: bytes, *, lasting: bool = True) -> None:
            raise AssertionError("a reader writes nothing")

        def create(self, name: str, data: bytes) -> bool:
            raise AssertionError("a reader creates nothing")

        def delete(self, name: str) -> None:
            raise AssertionError("a reader deletes nothing")

    last = LastPlan.read(Purged())
    assert last is not None
    assert last.plan.number == 12


def test_a_newer_driver_counts_more_than_a_higher_batch() -> None:
    files = MemoryFiles()
    for epoch, number in ((2, 5), (10, 3), (9, 8)):
        data = BatchPlan(number=number, run=f"r{epoch}").to_json()
        write_sealed(files, f"plans/{epoch}-{number}", data)
    last = LastPlan.read(files)
    assert last is not None
    assert last.plan.run == "r10"


def test_a_damaged_plan_is_named() -> None:
    files = MemoryFiles()
    files.write("plans/1-1", b"{}")
    with pytest.raises(ss.CheckpointError, match="plans/1-1 is damaged"):
        LastPlan.read(files)


def test_a_piece_stands_for_many_rows() -> None:
    piece = Piece(("a",), [(0, 2), (7, 8)], Place("t/0", 100))
    assert list(Piece.from_json(piece.to_json()).rows()) == [
        ("a", 0, "t/0", 100),
        ("a", 1, "t/0", 101),
        ("a", 7, "t/0", 107),
    ]


def test_the_desk_answers_on_after_strangers_and_mistakes(tmp_path: Path) -> None:
    """Nobody without the key is heard; a fault is the caller's alone."""
    files = LocalFiles(tmp_path / "sparkstorm")
    Manifest(topology="t", partitions=1).write(files)
    split = ss.Split(count=2, data={"path": "in.txt", "line": 4})
    plan = BatchPlan(
        number=1, run="r", outstanding=(Outstanding(owner="lines/0", split=split, attempt=1),)
    )
    write_sealed(files, "plans/1-1", plan.to_json())
    session: Any = None  # no table of files needs one
    desk = Desk(session)
    with pytest.raises(AuthenticationError):
        Client(desk.address.path, family="AF_UNIX", authkey=b"guessed")
    with pytest.raises(ss.CheckpointError, match="no checkpoint of sparkstorm"):
        list(ask(desk.address, "messages", str(tmp_path / "elsewhere")))
    assert not (tmp_path / "elsewhere").exists()
    with pytest.raises(ss.CheckpointError, match="no table 'words'"):
        list(ask(desk.address, "words", str(tmp_path)))
    (piece,) = ask(desk.address, "messages", str(tmp_path))
    assert [row[-2:] for row in piece.rows()] == [("in.txt", 5), ("in.txt", 6)]
