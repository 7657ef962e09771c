"""What a second run on the same files takes up, and what it leaves alone."""

from pathlib import Path

import sparkstorm as ss
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.spouts import LinesSpout
from sparkstorm.testing import LocalRunner, ManualClock


class Upper(ss.BasicBolt):
    """Passes a line on."""

    outputs = "line string"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Emit the line in capitals."""
        collector.emit([tup["sentence"].upper()])


def topology(path: Path, *, more: bool = False) -> ss.Topology:
    """Lines through one bolt, or through one more, whose id sorts before all others."""
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", LinesSpout(path))
    builder.set_bolt("upper", Upper(), parallelism=2).shuffle_grouping("lines")
    if more:
        builder.set_bolt("a-first", Upper(), parallelism=3).shuffle_grouping("lines")
    return builder.create_topology()


def run(
    wired: ss.Topology, files: MemoryFiles, batches: int | None = None, **config: int
) -> tuple[list[str], ss.Statistics]:
    """Run some batches, or all; return what was emitted and the statistics."""
    seen: list[str] = []
    with LocalRunner(
        wired,
        files=files,
        clock=ManualClock(),
        config=ss.Config(**config),
        taps=["upper"],
        on_tap=lambda key, task, rows: seen.extend(row[0] for row in rows),
    ) as runner:
        if batches is None:
            runner.run_until_idle()
        else:
            for _ in range(batches):
                runner.step()
        return seen, runner.statistics()


def test_a_clean_restart_does_nothing_again(tmp_path: Path) -> None:
    """After a drained run, a second one emits nothing and counts nothing."""
    path = tmp_path / "lines.txt"
    path.write_text("a\nb\nc\n")
    files = MemoryFiles()
    first, _ = run(topology(path), files)
    again, statistics = run(topology(path), files)
    assert sorted(first) == ["A", "B", "C"]
    assert again == []
    assert (statistics.emitted, statistics.acked, statistics.failed) == (0, 0, 0)


def test_progress_outlives_a_new_numbering_of_tasks(tmp_path: Path) -> None:
    """Another bolt and another number of ackers shift the tasks; progress stays with its spout."""
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"line {n}\n" for n in range(20)))
    files = MemoryFiles()
    small = {"batch_min_messages": 5, "batch_max_messages": 5}
    first, before = run(topology(path), files, batches=2, **small)
    second, after = run(topology(path, more=True), files, acker_executors=3, **small)
    assert sorted(first) == sorted(f"LINE {n}" for n in range(5))
    assert sorted(second) == sorted(f"LINE {n}" for n in range(10, 20))  # 5 to 9 were committed
    assert (before.acked, after.acked, after.failed, after.pending) == (5, 15, 0, 0)
