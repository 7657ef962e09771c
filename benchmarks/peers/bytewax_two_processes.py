"""Bytewax on two processes of this machine: split, exchange by word, running count, last kept.

Each process makes half of the sentences. The script starts itself twice (``--process-id``). The
two processes talk over the loopback address and leave a report each, and the parent adds the
reports up. The run gives no guarantee: recovery is off, which is Bytewax's default.
"""

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main

from benchmarks.run_result import RunResult
from benchmarks.workload import WORDS_PER_SENTENCE, counts_match, sentence_lists

PEER = "bytewax_two_processes"
PROCESSES = 2
# Bytewax has no batches that end; the first share of the words is its warm-up.
WARM_UP_SHARE = 0.2
_SAMPLE_EVERY_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A process's progress at one time; the clock is the same in all processes."""

    at_s: float
    words: int
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessReport:
    """The report of one process: its last counts, and its samples."""

    counts: dict[str, int]
    samples: list[Sample]

    def write(self, path: Path) -> None:
        """Leave the report in a file."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> "ProcessReport":
        """Read the report of a process."""
        raw = json.loads(path.read_text())
        return cls(counts=raw["counts"], samples=[Sample(**s) for s in raw["samples"]])


class SentencePart(StatelessSourcePartition[str]):
    """Gives a range of the sentences in lists of ``batch``."""

    def __init__(self, start: int, stop: int, batch: int) -> None:
        self._lists = sentence_lists(start, stop, batch)

    def next_batch(self) -> Iterable[str]:
        """Return the next list; StopIteration is Bytewax's end of input."""
        return next(self._lists)


class SentenceSource(DynamicSource[str]):
    """Shares the sentences evenly among the workers."""

    def __init__(self, sentences: int, batch: int) -> None:
        self._sentences = sentences
        self._batch = batch

    def build(self, step_id: str, worker_index: int, worker_count: int) -> SentencePart:
        """Make the part of one worker."""
        start = self._sentences * worker_index // worker_count
        stop = self._sentences * (worker_index + 1) // worker_count
        return SentencePart(start, stop, self._batch)


class LastCountsPart(StatelessSinkPartition[tuple[str, int]]):
    """Keeps the last count of each word of this process."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.samples: list[Sample] = []
        self._words = 0
        self._next_sample_s = 0.0

    def write_batch(self, items: list[tuple[str, int]]) -> None:
        """Keep the new updates."""
        self.counts.update(items)
        self._words += len(items)
        if time.monotonic() >= self._next_sample_s:
            self.sample()

    def sample(self) -> None:
        """Note this process's progress."""
        now = time.monotonic()
        self._next_sample_s = now + _SAMPLE_EVERY_S
        self.samples.append(Sample(at_s=now, words=self._words, cpu_s=time.process_time()))

    def close(self) -> None:
        """Note the end of the input."""
        self.sample()


class LastCounts(DynamicSink[tuple[str, int]]):
    """A sink with one part, for the one worker of this process."""

    def __init__(self) -> None:
        self.part = LastCountsPart()

    def build(self, step_id: str, worker_index: int, worker_count: int) -> LastCountsPart:
        """Give the part of this process."""
        return self.part


def count_one(count: int | None, _: None) -> tuple[int, int]:
    """Count one more occurrence of a word; return the new state and the emitted value."""
    count = (count or 0) + 1
    return count, count


class CountMany(op.StatefulBatchLogic[None, int, int]):
    """Counts all occurrences of a word that came together; emits each running count."""

    def __init__(self, count: int | None) -> None:
        self._count = count or 0

    def on_batch(self, values: list[None]) -> tuple[Iterable[int], bool]:
        """Count the occurrences, and keep the state."""
        before = self._count
        self._count += len(values)
        return range(before + 1, self._count + 1), False

    def snapshot(self) -> int:
        """Give the state to keep."""
        return self._count


def word_count(sentences: int, batch: int, counting: str, sink: LastCounts) -> Dataflow:
    """Wire the word count."""
    flow = Dataflow("word_count")
    texts = op.input("sentences", flow, SentenceSource(sentences, batch))
    words = op.flat_map("split", texts, lambda text: [(word, None) for word in text.split()])
    if counting == "word":
        counts = op.stateful_map("count", words, count_one)
    else:
        counts = op.stateful_batch("count", words, CountMany)
    op.output("last", counts, sink)
    return flow


def run_process(options: argparse.Namespace) -> None:
    """Run one of the two processes."""
    sink = LastCounts()
    flow = word_count(options.sentences, options.batch, options.counting, sink)
    cluster_main(flow, options.addresses.split(","), options.process_id)
    ProcessReport(counts=sink.part.counts, samples=sink.part.samples).write(options.report)


def run(options: argparse.Namespace) -> RunResult:
    """Run both processes and add their reports up."""
    addresses = ",".join(_free_addresses(PROCESSES))
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        paths = [Path(folder, f"{i}.json") for i in range(PROCESSES)]
        processes = [
            _start(options, ["--process-id", str(i), "--addresses", addresses, "--report", str(p)])
            for i, p in enumerate(paths)
        ]
        _wait_for_all(processes)
        return combine([ProcessReport.read(p) for p in paths], options)


def combine(reports: list[ProcessReport], options: argparse.Namespace) -> RunResult:
    """Return the figures of the run, from the reports of its processes."""
    counts = {word: count for report in reports for word, count in report.counts.items()}
    # A word that two processes counted would hide one of the two counts.
    each_word_once = len(counts) == sum(len(report.counts) for report in reports)
    warm, end = _steady_part(reports, options.sentences * WORDS_PER_SENTENCE * WARM_UP_SHARE)
    steady_sentences = (end.words - warm.words) / WORDS_PER_SENTENCE
    seconds = end.at_s - warm.at_s
    return RunResult(
        peer=PEER,
        sentences=options.sentences,
        batch=options.batch,
        seconds=seconds,
        sentences_per_s=steady_sentences / seconds,
        cpu_s_per_million=(end.cpu_s - warm.cpu_s) / steady_sentences * 1e6,
        counts_ok=each_word_once and counts_match(counts, options.sentences),
    )


def _steady_part(reports: list[ProcessReport], warm_words: float) -> tuple[Sample, Sample]:
    """Return the first sample after the warm-up, and the last sample."""
    warm = [total for total in _totals(reports) if total.words >= warm_words]
    if len(warm) < 2:
        raise ValueError("the run ended within its warm-up: give more --sentences")
    return warm[0], warm[-1]


def _totals(reports: list[ProcessReport]) -> Iterator[Sample]:
    """Add up the processes' samples in the order of time, once each process has a sample."""
    latest: dict[int, Sample] = {}
    samples = ((sample, i) for i, report in enumerate(reports) for sample in report.samples)
    for sample, process in sorted(samples, key=lambda entry: entry[0].at_s):
        latest[process] = sample
        if len(latest) == len(reports):
            yield Sample(
                at_s=sample.at_s,
                words=sum(s.words for s in latest.values()),
                cpu_s=sum(s.cpu_s for s in latest.values()),
            )


def _start(options: argparse.Namespace, role: list[str]) -> subprocess.Popen[bytes]:
    same = ["--sentences", str(options.sentences), "--batch", str(options.batch)]
    same += ["--counting", options.counting]
    return subprocess.Popen([sys.executable, "-m", f"benchmarks.peers.{PEER}", *same, *role])


def _wait_for_all(processes: list[subprocess.Popen[bytes]]) -> None:
    """Wait for the processes. When a process fails, end the other, which would wait for ever."""
    try:
        while any(process.poll() is None for process in processes):
            if any(process.returncode for process in processes):
                break
            time.sleep(0.05)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
    failed = [process.returncode for process in processes if process.returncode]
    if failed:
        raise RuntimeError(f"a Bytewax process ended with exit code {failed[0]}")


def _free_addresses(count: int) -> list[str]:
    """Find free ports on the loopback address."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    return addresses


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=PEER)
    parser.add_argument("--sentences", type=int, default=1_500_000)
    parser.add_argument("--batch", type=int, default=10_000, help="sentences a source poll")
    parser.add_argument(
        "--counting",
        choices=["word", "batch"],
        default="word",
        help="stateful_map, called for each word; or stateful_batch, for all that came together",
    )
    parser.add_argument("--process-id", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--addresses", help=argparse.SUPPRESS)
    parser.add_argument("--report", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Run the benchmark from the command line."""
    options = _parse_options()
    if options.process_id is None:
        run(options).print_json()
    else:
        run_process(options)


if __name__ == "__main__":
    main()
