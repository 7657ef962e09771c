"""The spouts that come with sparkstorm: what they emit, retry, give up and resume."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sparkstorm as ss
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.components.context import TaskContext
from sparkstorm.errors import SpoutConnectionError
from sparkstorm.spouts import IteratorSpout, LinesSpout, ReplayingSpout


def column_of(batch: object) -> list[Any]:
    """The first column of what a source has read."""
    assert isinstance(batch, pa.RecordBatch)
    column: list[Any] = batch.column(0).to_pylist()
    return column


class Show(ss.BasicBolt):
    """Emits what it sees, with the attempt; fails what contains "bad" until attempt 3."""

    outputs = "line string, attempt int"

    def __init__(self, bears: int = 3) -> None:
        self.bears = bears

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if "bad" in tup[0] and tup.attempt < self.bears:
            raise ValueError(tup[0])
        collector.emit([tup[0], tup.attempt])


class Queue(ReplayingSpout):
    """A source that gives each letter once."""

    outputs = "letter string"

    def open(self, config: ss.Config, context: TaskContext, collector: ss.SpoutCollector) -> None:
        super().open(config, context, collector)
        self.left = list("abcd")

    def next_message(self) -> tuple[str, list[str]] | None:
        return ((letter := self.left.pop(0)), [letter + "bad"]) if self.left else None

    def exhausted(self) -> bool:
        return not self.left and not self.kept


def wired(spout: Any, bolt: Any, **options: Any) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", spout, **options)
    builder.set_bolt("show", bolt, parallelism=2).shuffle_grouping("lines")
    return builder.create_topology()


FILES = {
    "plain.txt": (b"one\ntwo\nthree\n", ["one", "two", "three"]),
    "unended.txt": (b"one\ntwo", ["one", "two"]),
    "empty.txt": (b"", []),
    "blank.txt": (b"\n\nx\n\n", ["", "", "x", ""]),
    "crlf.txt": (b"one\r\ntwo\r\n", ["one", "two"]),
    "utf8.txt": ("žluťoučký\n€ 😀\n".encode(), ["žluťoučký", "€ 😀"]),
    "one.txt": (b"\n", [""]),
}


def write(folder: Path, names: list[str]) -> list[str]:
    """Write the files and return all their lines."""
    for name in names:
        (folder / name).write_bytes(FILES[name][0])
    return [line for name in names for line in FILES[name][1]]


@pytest.mark.parametrize("name", sorted(FILES))
def test_lines_of_one_file(run_locally: Any, tmp_path: Path, name: str) -> None:
    """Every line is one message, whatever its end and encoding, in order."""
    lines = write(tmp_path, [name])
    spout = LinesSpout(tmp_path / name, field="text")
    with run_locally(wired(spout, Show()), {"batch_max_messages": 2}) as play:
        statistics = play.drain()
        assert [row[0] for row in play.emitted("lines")] == lines
        assert statistics.acked == len(lines)


def test_lines_of_many_files(run_topology: Any, tmp_path: Path) -> None:
    """Globs and several patterns are read whole, each file once, by several tasks."""
    lines = write(tmp_path, sorted(FILES))
    spout = LinesSpout(str(tmp_path / "*.txt"), tmp_path / "plain.txt")
    with run_topology(wired(spout, Show(), parallelism=3)) as play:
        statistics = play.drain()
        assert Counter(row[0] for row in play.emitted("show")) == Counter(lines)
        assert (statistics.acked, statistics.pending) == (len(lines), 0)


def test_unreadable_file_is_an_error_at_the_start(run_topology: Any, tmp_path: Path) -> None:
    """A file that is not there is named before anything runs."""
    with (
        pytest.raises(SpoutConnectionError, match=r"absent\.txt.*Give a file that exists"),
        run_topology(wired(LinesSpout(tmp_path / "absent.txt"), Show())),
    ):
        pass


def test_failed_lines_come_back(run_topology: Any, tmp_path: Path) -> None:
    """Only the lines that failed are read again, with a higher attempt."""
    (tmp_path / "a.txt").write_text("good\nbad 1\nfine\nbad 2\n")
    topology = wired(LinesSpout(tmp_path / "a.txt"), Show())
    with run_topology(topology, {"retry_backoff_secs": 0}) as play:
        statistics = play.drain()
        assert sorted(play.emitted("show")) == [
            ("bad 1", 3),
            ("bad 2", 3),
            ("fine", 1),
            ("good", 1),
        ]
        assert (statistics.acked, statistics.failed, statistics.retried) == (4, 4, 4)
        assert statistics.given_up == 0


def test_failed_lines_are_given_up_in_the_end(run_topology: Any, tmp_path: Path) -> None:
    """After max_retries a line is given up: counted, and reported with file, line and reason."""
    (tmp_path / "a.txt").write_text("good\nbad\nfine\n")
    config = {"retry_backoff_secs": 0, "max_retries": 2}
    topology = wired(LinesSpout(tmp_path / "a.txt"), Show(bears=99))
    with run_topology(topology, config) as play:
        statistics = play.drain()
        assert (statistics.acked, statistics.failed, statistics.given_up) == (2, 3, 1)
        assert statistics.pending == 0
        (line,) = [text for text in play.texts("lines") if "given up" in text]
        assert all(words in line for words in ("a.txt", ", 2)", "3 tries", "ValueError: bad"))


def test_backoff_holds_back_only_what_failed(run_locally: Any, tmp_path: Path) -> None:
    """A failed line waits for its time; fresh lines go on meanwhile."""
    (tmp_path / "a.txt").write_text("bad\n" + "fine\n" * 5)
    config = {"retry_backoff_secs": 60, "batch_max_messages": 1}
    with run_locally(wired(LinesSpout(tmp_path / "a.txt"), Show()), config) as play:
        statistics = play.settle()
        assert (statistics.acked, statistics.pending) == (5, 1)
        play.clock.advance(61)
        play.settle()
        play.clock.advance(121)
        assert (play.settle().acked, play.statistics().pending) == (6, 0)


def test_restart_goes_on_where_acks_ended(run_locally: Any, tmp_path: Path) -> None:
    """A second run on the same files reads on, and takes up what the first one owed."""
    lines = [f"line {number}" for number in range(20)]
    lines[3] = "bad"
    (tmp_path / "a.txt").write_text("\n".join(lines))
    topology = wired(LinesSpout(tmp_path / "a.txt"), Show())
    config = {"retry_backoff_secs": 60, "batch_max_messages": 4}
    files = MemoryFiles()
    with run_locally(topology, config, files=files) as first:
        for _ in range(3):
            first.runner.step()
    with run_locally(topology, config, files=files) as second:
        second.settle()
        second.clock.advance(1000)
        statistics = second.drain()
    assert first.statistics().acked + statistics.acked == len(lines)
    seen = [row[0] for row in first.emitted("show") + second.emitted("show")]
    assert max(Counter(seen).values()) == 1
    assert set(lines) - set(seen) == set(lines[8:12])  # of the batch on which the first one ended
    assert [row for row in second.emitted("show") if row[0] == "bad"] == [("bad", 3)]


def test_lines_snapshot_and_restore(tmp_path: Path) -> None:
    """The progress survives JSON, and a restored spout plans exactly the rest."""
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    context = TaskContext(
        topology="t", component="lines", task=1, tasks={"lines": range(1, 2)}, config=ss.Config()
    )
    first, second = LinesSpout(tmp_path / "a.txt"), LinesSpout(tmp_path / "a.txt")
    first.open(ss.Config(), context)
    (split,) = first.plan(2)
    second.restore(json.loads(json.dumps(first.snapshot())))
    second.open(ss.Config(), context)
    assert not second.exhausted()
    (rest,) = second.plan(10)
    assert (split.count, rest.count) == (2, 1)
    assert [column_of(batch) for batch in second.read(rest)] == [["three"]]
    assert second.msg_id(rest, 0) == (str(tmp_path / "a.txt"), 3)
    assert second.exhausted()
    assert second.plan(10) == []


def opened(*paths: Path | str, task: int = 0, tasks: int = 1, cursors: Any = None) -> LinesSpout:
    """One task's spout, with the progress of an earlier run if there is one."""
    spout = LinesSpout(*paths)
    if cursors is not None:
        spout.restore(json.loads(json.dumps(cursors)))
    context = TaskContext(
        topology="t",
        component="lines",
        task=task,
        tasks={"lines": range(tasks)},
        config=ss.Config(),
    )
    spout.open(ss.Config(), context)
    return spout


def planned(spout: LinesSpout) -> list[str]:
    """The names of the files that it plans splits of until it has no more."""
    names: list[str] = []
    while splits := spout.plan(100):
        names += [Path(split.data["path"]).name for split in splits]
    return names


def test_a_file_stays_with_its_task_when_others_come_and_go(tmp_path: Path) -> None:
    """Else a task without its cursor would read it again."""
    names = [f"{letter}.txt" for letter in "bcdefgh"]
    for name in names:
        (tmp_path / name).write_text("one\ntwo\n")
    first = [opened(str(tmp_path / "*.txt"), task=task, tasks=3) for task in range(3)]
    assert sorted(name for spout in first for name in planned(spout)) == names
    (tmp_path / "a.txt").write_text("new\n")
    (tmp_path / "d.txt").unlink()
    second = [
        opened(str(tmp_path / "*.txt"), task=task, tasks=3, cursors=spout.snapshot())
        for task, spout in enumerate(first)
    ]
    assert [name for spout in second for name in planned(spout)] == ["a.txt"]


def test_a_file_may_be_deleted_once_it_is_read(run_locally: Any, tmp_path: Path) -> None:
    """Nothing of it is missing; the files after it are read on."""
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("one\ntwo\nthree")
    topology = wired(LinesSpout(str(tmp_path / "*.txt")), Show())
    with run_locally(topology, {"batch_max_messages": 3}) as play:
        play.runner.step()
        (tmp_path / "a.txt").unlink()
        assert play.drain().acked == 6


@pytest.mark.parametrize("asked", ["plan", "exhausted"])
def test_a_file_that_is_gone_too_soon_is_named(tmp_path: Path, asked: str) -> None:
    """Its other lines were never seen, and nobody else could tell."""
    (tmp_path / "a.txt").write_text("one\ntwo\nthree")
    spout = opened(tmp_path / "a.txt")
    spout.plan(2)
    (tmp_path / "a.txt").unlink()
    with pytest.raises(
        SpoutConnectionError, match=r"a\.txt' is gone, .* up to line 2\. Put it back"
    ):
        spout.plan(10) if asked == "plan" else spout.exhausted()


@pytest.mark.parametrize("asked", ["plan", "exhausted"])
def test_a_file_that_became_unreachable_is_named(tmp_path: Path, asked: str) -> None:
    """A folder that is a file by now stands for a mount that went away."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.txt").write_text("one\n")
    spout = opened(tmp_path / "logs" / "a.txt")
    assert planned(spout) == ["a.txt"]
    (tmp_path / "logs").rename(tmp_path / "elsewhere")
    (tmp_path / "logs").touch()
    with pytest.raises(SpoutConnectionError, match=r"cannot read .*a\.txt': Not a directory"):
        spout.plan(10) if asked == "plan" else spout.exhausted()


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """Whoever gives one means its files."""
    with pytest.raises(SpoutConnectionError, match=r"is a folder: give its files, '.*/\*' say"):
        opened(tmp_path)


def test_what_follows_the_last_line_end_is_a_message(tmp_path: Path) -> None:
    """Many files end so; what is appended to it later is one more."""
    (tmp_path / "a.txt").write_text("one\ntw")
    spout = opened(tmp_path / "a.txt")
    splits = spout.plan(10)
    with (tmp_path / "a.txt").open("a") as file:
        file.write("o\n")
    assert not spout.exhausted()
    splits += spout.plan(10)
    read = [column_of(batch) for split in splits for batch in spout.read(split)]
    assert read == [["one", "tw"], ["o"]]


def test_iterator_spout_shares_and_retries(run_topology: Any) -> None:
    """Several tasks share an iterable; failed items come back; the run ends when all is done."""
    items = [f"bad {n}" if n % 10 == 0 else f"item {n}" for n in range(50)]
    spout = IteratorSpout(items, "line string")
    topology = wired(spout, Show(), parallelism=3)
    with run_topology(topology, {"retry_backoff_secs": 0}) as play:
        statistics = play.drain()
        assert Counter(row[0] for row in play.emitted("show")) == Counter(items)
        assert (statistics.acked, statistics.failed) == (50, 10)
        assert len(play.by_task("lines")) == 3


def test_iterator_spout_takes_a_function_and_rows(run_locally: Any) -> None:
    """The iterable may be made in the driver by a function; tuples and lists are rows."""
    spout = IteratorSpout(lambda: ((f"line {n}", n) for n in range(3)), "line string, n int")
    with run_locally(wired(spout, Show())) as play:
        play.drain()
        assert sorted(play.emitted("lines")) == [("line 0", 0), ("line 1", 1), ("line 2", 2)]


def test_a_spout_has_its_collector_and_context_without_open(run_topology: Any) -> None:
    """As bolts have theirs: an override of open need not keep them, and none is needed."""

    class Once(ss.Spout):
        outputs = "line string"

        def next_tuple(self) -> None:
            if not self.exhausted():
                self.done = True
                self.collector.emit([self.context.component], msg_id=1)

        def exhausted(self) -> bool:
            return getattr(self, "done", False)

    with run_topology(wired(Once(), Show())) as play:
        play.drain()
        assert play.emitted("lines") == [("lines",)]


def test_replaying_spout_keeps_until_the_ack(run_locally: Any) -> None:
    """A message is kept until its ack, emitted again after a failure, and given up in the end."""
    for retries, acked, given_up in ((5, 4, 0), (1, 0, 4)):
        config = {"retry_backoff_secs": 0, "max_retries": retries}
        with run_locally(wired(Queue(), Show()), config) as play:
            statistics = play.drain()
            assert (statistics.acked, statistics.given_up) == (acked, given_up)
            (task,) = play.runner.coordinator.hosted.values()
            assert task.spout.kept == 0
