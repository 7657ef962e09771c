"""The summary of a run: a table for people, facts for programs."""

from dataclasses import asdict
from typing import Any

from rich.table import Table

from sparkstorm.metrics import Statistics
from sparkstorm.texts.showing import visible
from sparkstorm.texts.wording import counted
from sparkstorm.topology.graph import Topology

__all__ = ["summary_facts", "summary_table", "tuples_of", "undone"]


def summary_table(
    name: str,
    statistics: Statistics,
    secs: float,
    topology: Topology,
    *,
    at_end: bool = True,
) -> Table:
    """Return the tracking summary, with the counts of each component; spouts only emit."""
    total = tuples_of(statistics)
    table = Table(title=f"{name}: {_verdict(statistics, at_end=at_end)}", title_justify="left")
    for column in ("", "tasks", "executed", "emitted", "acked", "failed"):
        table.add_column(column, justify="right" if column else "left")
    for component, spec in sorted(topology.components.items()):
        counts = statistics.component(component)
        taken = [f"{n:,}" for n in (counts.executed, counts.acked, counts.failed)]
        executed, acked, failed = ("", "", "") if spec.is_spout else taken
        emitted = f"{counts.emitted:,}"
        table.add_row(visible(component), f"{spec.parallelism:,}", executed, emitted, acked, failed)
    batches = "1 batch" if statistics.batches == 1 else f"{statistics.batches:,} batches"
    if statistics.rollbacks:
        batches += f" ({counted(statistics.rollbacks, 'rollback')})"
    table.caption_justify = "left"
    table.caption = (
        f"messages: {statistics.acked:,} acked, {statistics.failed:,} failed attempts"
        f"{_reasons(statistics)}, {statistics.given_up:,} given up, "
        f"{statistics.pending:,} pending{_letters(statistics)}\n"
        f"{counted(total, 'tuple')} in {batches} and {secs:.1f} s"
    )
    return table


def undone(statistics: Statistics) -> bool:
    """Whether some message, or some untracked tuple, was not processed."""
    messages = statistics.pending or statistics.given_up or statistics.left_failed
    return bool(messages or statistics.untracked_failed)


def _verdict(statistics: Statistics, *, at_end: bool) -> str:
    if undone(statistics):
        left = []
        if statistics.untracked_failed:
            left.append(f"{counted(statistics.untracked_failed, 'untracked tuple')} failed")
        if statistics.given_up:
            left.append(f"{counted(statistics.given_up, 'message')} given up")
        if statistics.pending:
            left.append(f"{statistics.pending:,} left pending")
        if statistics.left_failed:
            left.append(f"{statistics.left_failed:,} left failed")
        return " and ".join(left)
    if at_end:
        return "every message acked"
    return "stopped before the end of its sources; every message so far acked"


def _reasons(statistics: Statistics) -> str:
    parts = (f"{count:,} {reason}" for reason, count in sorted(statistics.failures.items()))
    return f" ({', '.join(parts)})" if statistics.failures else ""


def _letters(statistics: Statistics) -> str:
    parts = []
    if statistics.dead_letters:
        parts.append(counted(statistics.dead_letters, "dead letter"))
    if statistics.dead_letter_faults:
        parts.append(f"{counted(statistics.dead_letter_faults, 'fault')} of their sink")
    if statistics.replayed:
        parts.append(f"{counted(statistics.replayed, 'dead letter')} replayed and acked")
    return "".join(f", {part}" for part in parts)


def tuples_of(statistics: Statistics) -> int:
    """Return how many tuples all components emitted."""
    return sum(one.emitted for tasks in statistics.components.values() for one in tasks.values())


def summary_facts(
    name: str, statistics: Statistics, secs: float, topology: Topology, *, at_end: bool
) -> dict[str, Any]:
    """Return the summary as JSON types; the names are those of :class:`sparkstorm.Statistics`."""
    counts = ("emitted", "acked", "failed", "pending", "retried", "given_up", "left_failed")
    more = ("untracked_failed", "dead_letters", "replayed", "rollbacks", "batches")
    components = {name: statistics.component(name) for name in sorted(topology.components)}
    return {
        "topology": name,
        "done": not undone(statistics),
        "at_end": at_end,
        "secs": round(secs, 3),
        **{key: getattr(statistics, key) for key in (*counts, *more)},
        "failures": dict(statistics.failures),
        "components": {
            component: {
                "tasks": topology.components[component].parallelism,
                **{key: getattr(one, key) for key in ("executed", "emitted", "acked", "failed")},
                "user": dict(one.user),
            }
            for component, one in components.items()
        },
        "partitions": {
            spout: [asdict(one) for one in partitions]
            for spout, partitions in statistics.partitions.items()
        },
    }
