"""The output of a benchmark run: one JSON line, of the same form for sparkstorm and every peer."""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from benchmarks.process_cpu import TreeCpu

WARM_UP_BATCHES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The figures of one run of a word count.

    ``seconds``, ``sentences_per_s`` and ``cpu_s_per_million`` are of the steady part only: after
    the first ``WARM_UP_BATCHES`` batches, or after a warm-up share where there are no batches.
    """

    peer: str
    sentences: int  # all of the run, warm-up included; counts_ok was checked against it
    batch: int  # the sentences of a batch in the steady part (their median)
    seconds: float
    sentences_per_s: float
    cpu_s_per_million: float
    counts_ok: bool
    batch_times_s: list[float] = field(default_factory=list)

    def print_json(self) -> None:
        """Print the result as the one JSON line that the caller reads."""
        _print_json_line(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallBatchResult:
    """The time of a batch of a few rows, warm-up left out.

    ``stages`` counts the Python stages behind the source. ``stateful_stage`` is the stage that
    keeps its state in Spark, counted from 1, or 0 for none.
    """

    peer: str
    stages: int
    stateful_stage: int
    batch: int
    median_batch_s: float
    counts_ok: bool
    batch_times_s: list[float] = field(default_factory=list)

    def print_json(self) -> None:
        """Print the result as the one JSON line that the caller reads."""
        _print_json_line(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryResult:
    """Bytes that the driver holds for each pending message.

    ``all_told`` is all memory that grows with the pending messages, the spout's msg_id included;
    ``ledger`` is the ledger's part alone. The two ``_old_root`` figures are taken after a root
    was left open while many others came and went.
    """

    peer: str
    pending: int
    all_told_bytes: float
    ledger_bytes: float
    all_told_bytes_old_root: float
    ledger_bytes_old_root: float
    counts_ok: bool

    def print_json(self) -> None:
        """Print the result as the one JSON line that the caller reads."""
        _print_json_line(asdict(self))


def _print_json_line(figures: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()


class BatchMeter:
    """Takes the time and the CPU at the end of each batch of a run.

    Call ``batch_done`` at the end of a batch, with the batch's number of sentences. The time of a
    batch is from the end of the batch before to its own end, so that the engine's work between two
    batches (log, commit, planning) counts too.
    """

    def __init__(self, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._cpu = TreeCpu()
        self._sizes: list[int] = []
        self._ends_s: list[float] = []
        self._cpu_s: list[float] = []

    def __repr__(self) -> str:
        return f"BatchMeter(batches={len(self._sizes)}, sentences={self.sentences})"

    @property
    def sentences(self) -> int:
        """How many sentences have been processed so far."""
        return sum(self._sizes)

    def batch_done(self, sentences: int) -> None:
        """Note that a batch of so many sentences has just ended."""
        self._ends_s.append(self._clock())
        self._cpu_s.append(self._cpu.sample())
        self._sizes.append(sentences)

    def result(self, peer: str, *, counts_ok: bool) -> RunResult:
        """Return the steady figures of the run."""
        first = WARM_UP_BATCHES - 1
        steady = self._sizes[WARM_UP_BATCHES:]
        if not steady:
            raise ValueError(
                f"{len(self._sizes)} batches are too few: give --sentences for more than "
                f"{WARM_UP_BATCHES} batches, the first {WARM_UP_BATCHES} are warm-up"
            )
        seconds = self._ends_s[-1] - self._ends_s[first]
        cpu_s = self._cpu_s[-1] - self._cpu_s[first]
        return RunResult(
            peer=peer,
            sentences=self.sentences,
            batch=sorted(steady)[len(steady) // 2],
            seconds=seconds,
            sentences_per_s=sum(steady) / seconds,
            cpu_s_per_million=cpu_s / sum(steady) * 1e6,
            counts_ok=counts_ok,
            batch_times_s=[b - a for a, b in zip(self._ends_s, self._ends_s[1:], strict=False)],
        )
