"""The word count benchmark: sparkstorm against itself, Bytewax and plain PySpark, in one run.

    python -m benchmarks.word_count [--quick]

Every figure is the median of 5 rounds; in a round each side runs once, in a process of its own,
one after the other. Ratios are taken round by round. All sides get the same sentences. All sides
with Spark get the same settings (``spark_settings.py``) and the same batch size: once the size on
which sparkstorm's default configuration settles, once 200,000. Only the steady state counts, after
3 batches. Exit code 0: all targets met; 1: a target missed or a count wrong; 2: a run failed.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rich.console import Console

from benchmarks.measure import (
    BenchmarkError,
    Command,
    Figures,
    Spread,
    can_import,
    interleave,
    ratios,
)
from benchmarks.report import Row, Target, dump, table
from sparkstorm._version import is_compiled

OURS = "benchmarks.ours"
BYTEWAX = "bytewax_two_processes"
_WIDTH_OF_A_FILE = 140
LARGE_BATCH = 200_000
SMALL_BATCH = 10

# The steady part of a side with a few large batches is short: give each at least so many batches.
LEAST_BATCHES = 6

Runs = dict[str, list[Figures]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many sentences each side gets: as many as it can count in some 20 to 40 seconds.

    The JVM goes on compiling for some twenty batches, a sixth of all CPU at first. With fewer
    batches this would weigh on the sides that run more of the JVM's code.
    """

    ours: int = 4_800_000
    bytewax: int = 1_500_000
    pyspark_tws: int = 1_200_000
    pyspark_jvm_count: int = 4_800_000
    bare_python: int = 3_000_000
    small: int = 1_000
    rounds: int = 5


QUICK = Sizes(
    ours=1_200_000,
    bytewax=600_000,
    pyspark_tws=1_000_000,
    pyspark_jvm_count=1_200_000,
    bare_python=1_000_000,
    small=600,
    rounds=1,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A ratio of two sides' throughput that has a target."""

    what: str
    above: str
    below: str
    target: Target


COMPARISONS = (
    Comparison(
        what="tracked ÷ untracked", above="tracked", below="untracked", target=Target(bound=0.8)
    ),
    Comparison(
        what="tracked ÷ Bytewax, two processes",
        above="tracked",
        below=BYTEWAX,
        target=Target(bound=1.0),
    ),
    Comparison(
        what="tracked ÷ PySpark by hand, transformWithState per word",
        above="tracked",
        below="pyspark_tws",
        target=Target(bound=3.0),
    ),
    Comparison(
        what="tracked ÷ PySpark by hand, mapInArrow and count in the JVM",
        above="tracked",
        below="pyspark_jvm_count",
        target=Target(bound=0.5),
    ),
    Comparison(
        what="stateful count ÷ the same bolt without state",
        above="tracked",
        below="stateless",
        target=Target(bound=0.8),
    ),
)

MEMORY_TARGETS = {
    "all_told_bytes": ("bytes a pending message, all told, msg_id included", 40.0),
    "all_told_bytes_old_root": ("the same with one root open for long", 40.0),
    "ledger_bytes": ("bytes a pending message, the ledger alone", 20.0),
    "ledger_bytes_old_root": ("the same with one root open for long", 20.0),
}


@dataclass(slots=True)
class Session:
    """One run of the benchmark: its arguments, and all figures so far."""

    sizes: Sizes
    console: Console
    peers_python: str
    daemon_module: str | None
    records: list[dict[str, object]] = field(default_factory=list)

    def run(self, setting: str, name: str, command: Command) -> Figures:
        """Run one command by itself and keep its figures."""
        (figures,) = self.run_in_turns(setting, {name: command}, rounds=1)[name]
        return figures

    def run_in_turns(self, setting: str, commands: Mapping[str, Command], rounds: int) -> Runs:
        """Run the commands in turns and keep their figures, by name."""
        runs: Runs = {name: [] for name in commands}
        for number, name, figures in interleave(commands, rounds):
            runs[name].append(figures)
            self.records.append({"setting": setting, "round": number, "side": name} | figures)
            self.console.print(f"[dim]{setting}, round {number + 1}: {name} {_brief(figures)}")
        return runs


def main() -> int:
    """Run the benchmark from the command line and return the exit code."""
    options = _parse_options()
    sizes = QUICK if options.quick else Sizes()
    session = Session(
        sizes=replace(sizes, rounds=options.rounds or sizes.rounds),
        console=Console(width=None if sys.stdout.isatty() else _WIDTH_OF_A_FILE),
        peers_python=options.peers_python,
        daemon_module=options.daemon_module,
    )
    try:
        rows = _peers_alone(session) if options.peers_only else _all_rows(session)
    except BenchmarkError as error:
        session.console.print(str(error), style="red", markup=False, highlight=False)
        session.console.print(f"The figures so far: {dump(session.records, [])}", soft_wrap=True)
        return 2
    how = "compiled" if is_compiled() else "in plain Python"
    session.console.print(table(f"Word count on two cores, sparkstorm {how}", rows))
    session.console.print(f"All figures: {dump(session.records, rows)}", soft_wrap=True)
    return 0 if all(row.is_ok for row in rows) else 1


def _all_rows(session: Session) -> list[Row]:
    return [
        *_throughput_rows(session, "default batch", None),
        *_throughput_rows(session, f"{LARGE_BATCH:,} a batch", LARGE_BATCH),
        *_small_batch_rows(session),
        *_memory_rows(session),
    ]


def _throughput_rows(session: Session, setting: str, batch: int | None) -> list[Row]:
    """Compare all sides at one batch size; ``None`` is sparkstorm's default configuration.

    The default has no fixed batch size. A run of sparkstorm's first finds the size on which it
    settles; the other sides then get that size.
    """
    tracked = _ours(session, "tracked", batch)
    if batch is None:
        batch = _whole(session.run(setting, "tracked, to find the batch", tracked), "batch")
    others = {mode: _ours(session, mode, batch) for mode in ("untracked", "stateless")}
    sides = {"tracked": tracked} | others | _peers(session, batch)
    runs = session.run_in_turns(setting, sides, session.sizes.rounds)
    return [*_ratio_rows(setting, runs), *_absolute_rows(setting, runs)]


def _peers_alone(session: Session) -> list[Row]:
    """Measure only the peers, at 200,000 a batch."""
    setting = f"{LARGE_BATCH:,} a batch"
    runs = session.run_in_turns(setting, _peers(session, LARGE_BATCH), session.sizes.rounds)
    return _absolute_rows(setting, runs)


def _small_batch_rows(session: Session) -> list[Row]:
    """Compare the time of a small batch with a plain query's of the same shape."""
    setting = f"{SMALL_BATCH} a batch"
    counts = ("--batch", str(SMALL_BATCH), "--sentences", str(session.sizes.small))
    ours = Command(module=OURS, arguments=("--mode", "small-batch", *counts))
    shape = session.run(setting, "ours, to find the stages", ours)
    plain = Command(
        module="benchmarks.peers.plain_query",
        arguments=(
            *("--stages", str(_whole(shape, "stages"))),
            *("--stateful-stage", str(_whole(shape, "stateful_stage"))),
            *counts,
            *_daemon(session),
        ),
    )
    runs = session.run_in_turns(setting, {"ours": ours, "plain": plain}, session.sizes.rounds)
    ours_s, plain_s = (_values(runs[side], "median_batch_s") for side in ("ours", "plain"))
    ours_ok, plain_ok = (_counts_ok(runs[side]) for side in ("ours", "plain"))
    return [
        Row(
            setting=setting,
            what="time of a batch ÷ that of a plain query with the same Python stages",
            figure=ratios(ours_s, plain_s),
            counts_ok=ours_ok and plain_ok,
            target=Target(bound=1.2, at_most=True),
        ),
        _plain_row(setting, "ours: ms a batch", [s * 1e3 for s in ours_s], ours_ok, digits=0),
        _plain_row(setting, "plain query: ms a batch", [s * 1e3 for s in plain_s], plain_ok, 0),
    ]


def _memory_rows(session: Session) -> list[Row]:
    """Read the driver's memory per pending message. Bytes do not vary, so one run will do."""
    command = Command(module=OURS, arguments=("--mode", "memory"))
    figures = session.run("memory", "ours", command)
    return [
        Row(
            setting="memory",
            what=what,
            figure=Spread.of([_number(figures, key)]),
            counts_ok=_counts_ok([figures]),
            target=Target(bound=bound, at_most=True),
            digits=1,
        )
        for key, (what, bound) in MEMORY_TARGETS.items()
    ]


def _ours(session: Session, mode: str, batch: int | None) -> Command:
    sentences = _enough(session.sizes.ours, batch or 0)
    arguments = ["--mode", mode, "--batch", str(batch or "default"), "--sentences", str(sentences)]
    return Command(module=OURS, arguments=arguments)


def _peers(session: Session, batch: int) -> dict[str, Command]:
    sizes = session.sizes
    peers = {
        "pyspark_tws": _spark_peer(session, "pyspark_tws", sizes.pyspark_tws, batch),
        "pyspark_jvm_count": _spark_peer(
            session, "pyspark_jvm_count", sizes.pyspark_jvm_count, batch
        ),
        "bare_python": Command(
            module="benchmarks.peers.bare_python", arguments=("--sentences", str(sizes.bare_python))
        ),
    }
    if can_import("bytewax", session.peers_python):
        peers[BYTEWAX] = Command(
            module=f"benchmarks.peers.{BYTEWAX}",
            arguments=("--sentences", str(sizes.bytewax)),  # no batches: its own best list size
            python=session.peers_python,
        )
    else:
        session.console.print(
            f"[yellow]Bytewax is left out, and its target not checked: "
            f"{session.peers_python} can't import it"
        )
    return peers


def _spark_peer(session: Session, name: str, sentences: int, batch: int) -> Command:
    arguments = ["--sentences", str(_enough(sentences, batch)), "--batch", str(batch)]
    return Command(module=f"benchmarks.peers.{name}", arguments=[*arguments, *_daemon(session)])


def _enough(sentences: int, batch: int) -> int:
    return max(sentences, LEAST_BATCHES * batch)


def _daemon(session: Session) -> tuple[str, ...]:
    return ("--daemon-module", session.daemon_module) if session.daemon_module else ()


def _ratio_rows(setting: str, runs: Runs) -> list[Row]:
    return [
        Row(
            setting=setting,
            what=comparison.what,
            figure=ratios(
                _values(runs[comparison.above], "sentences_per_s"),
                _values(runs[comparison.below], "sentences_per_s"),
            ),
            counts_ok=_counts_ok([*runs[comparison.above], *runs[comparison.below]]),
            target=comparison.target,
        )
        for comparison in COMPARISONS
        if comparison.below in runs  # Bytewax may not be installed
    ]


def _absolute_rows(setting: str, runs: Runs) -> list[Row]:
    rows: list[Row] = []
    for side, figures in runs.items():
        ok = _counts_ok(figures)
        rates, cpu = _values(figures, "sentences_per_s"), _values(figures, "cpu_s_per_million")
        rows.append(_plain_row(setting, f"{side}: sentences/s", rates, ok, digits=0))
        rows.append(_plain_row(setting, f"{side}: CPU s per million", cpu, ok, digits=1))
    return rows


def _plain_row(
    setting: str, what: str, values: Sequence[float], counts_ok: bool, digits: int
) -> Row:
    return Row(
        setting=setting, what=what, figure=Spread.of(values), counts_ok=counts_ok, digits=digits
    )


def _values(runs: Sequence[Figures], key: str) -> list[float]:
    return [_number(figures, key) for figures in runs]


def _number(figures: Figures, key: str) -> float:
    value = figures.get(key)
    if not isinstance(value, int | float):
        raise BenchmarkError(f"no number named {key} in {figures}")
    return float(value)


def _whole(figures: Figures, key: str) -> int:
    return int(_number(figures, key))


def _counts_ok(runs: Sequence[Figures]) -> bool:
    return all(figures.get("counts_ok") is True for figures in runs)


def _brief(figures: Figures) -> str:
    if "sentences_per_s" in figures:
        return f"{_number(figures, 'sentences_per_s'):,.0f} sentences/s"
    if "median_batch_s" in figures:
        return f"{_number(figures, 'median_batch_s') * 1e3:,.0f} ms a batch"
    return ""


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="word_count", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="1 round, fewer sentences")
    parser.add_argument("--rounds", type=int, help="how often each side runs, 5 if not given")
    parser.add_argument("--peers-only", action="store_true", help="only the peers, 200,000 a batch")
    parser.add_argument(
        "--peers-python",
        default=os.environ.get("PEERS_PYTHON", sys.executable),
        help="the Python that has Bytewax; PEERS_PYTHON from the environment, or else this one",
    )
    parser.add_argument(
        "--daemon-module",
        help="Python worker daemon of the Spark peers: ours by default, 'stock' for Spark's own",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
