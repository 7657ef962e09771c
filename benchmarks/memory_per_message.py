"""The driver's memory for each pending message of a LinesSpout."""

import gc
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import sparkstorm as ss
from benchmarks.run_result import MemoryResult
from sparkstorm.acking.ids import seeds
from sparkstorm.acking.shares import Entries
from sparkstorm.acking.tally import Tally
from sparkstorm.batches.assembly import make_coordinator
from sparkstorm.batches.coordinator import Coordinator
from sparkstorm.batches.job_result import JobResult
from sparkstorm.checkpoint.engine_log import EngineLog
from sparkstorm.checkpoint.files import LocalFiles
from sparkstorm.packets.packet import Kind, PacketWriter
from sparkstorm.planning.passes import make_plan
from sparkstorm.tasks.acker import encode_result
from sparkstorm.testing import ManualClock

_PENDING = 200_000
_ROUNDS = 5


class Keep(ss.Bolt):
    """Subscribes, so that the topology has a bolt; the benchmark never runs the bolt."""

    def execute(self, tup: ss.Tuple) -> None:
        """Hold the tuple for ever."""


def measure_memory(peer: str) -> MemoryResult:
    """Plan 200,000 lines, leave all of them open after their batch, and count the bytes."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "lines.txt"
        path.write_text("a line of some text to be held\n" * (_PENDING * (_ROUNDS + 1)))
        all_told, ledger = _measure(path, rounds=0)
        all_told_old, ledger_old = _measure(path, rounds=_ROUNDS)
    return MemoryResult(
        peer=peer,
        pending=_PENDING,
        all_told_bytes=all_told,
        ledger_bytes=ledger,
        all_told_bytes_old_root=all_told_old,
        ledger_bytes_old_root=ledger_old,
        counts_ok=True,
    )


def _measure(path: Path, rounds: int) -> tuple[float, float]:
    """Return the bytes per pending message, after ``rounds`` batches that leave one root open."""
    coordinator = _coordinator(path, rounds)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(rounds):
        _batch(coordinator, number, open_all=False)
    _batch(coordinator, rounds, open_all=True)
    coordinator.next_batch(rounds + 1)
    gc.collect()
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    pending = coordinator.statistics().pending
    return used / pending, coordinator.ledger_bytes / pending


def _coordinator(path: Path, rounds: int) -> Coordinator:
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", ss.spouts.LinesSpout(path))
    builder.set_bolt("keep", Keep()).shuffle_grouping("lines")
    config = ss.Config(
        batch_min_messages=_PENDING,
        batch_max_messages=_PENDING,
        acker_executors=1,
        max_spout_pending=_PENDING + 1_000,
    )
    plan = make_plan(builder.create_topology(), config=config, partitions=2)
    files = LocalFiles(path.with_name(f"checkpoint-{rounds}"))
    coordinator = make_coordinator(plan, files, ManualClock())
    coordinator.open(EngineLog())
    return coordinator


def _batch(coordinator: Coordinator, number: int, *, open_all: bool) -> None:
    """Play the outcome of a batch: all roots stay open, or all but the very first are complete."""
    coordinator.next_batch(number)
    ranges = coordinator.info(number).ranges
    tally = Tally(ranges, 0, 1)
    held = []
    for span in ranges:
        roots = np.arange(span.count, dtype=np.uint64) + np.uint64(span.first)
        keep = np.full(span.count, open_all) | (roots == ranges[0].first if number == 0 else False)
        tally.add(Entries(roots[~keep], seeds(roots[~keep])))
        held.append(roots[keep])
    tally.hold(np.concatenate(held))
    row = PacketWriter(1).for_driver(Kind.OUTCOME, encode_result(tally.result()))
    coordinator.finish(number, JobResult(rows=[row], secs=1.0))
