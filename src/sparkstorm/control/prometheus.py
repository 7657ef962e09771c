"""The exposition: running topologies as Prometheus reads them, in its text format 0.0.4.

Names follow Prometheus' conventions: base units, ``_total`` for what only grows, histograms with
cumulative buckets. Counters are those of the run, so a restart begins at 0, as Prometheus expects.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, final

from sparkstorm.control.control import Control
from sparkstorm.control.views import (
    ComponentMetricsView,
    PartitionView,
    QuantilesView,
    SituationView,
    TopologyView,
)
from sparkstorm.errors import WorldError

__all__ = ["CONTENT_TYPE", "exposition"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Kind = Literal["counter", "gauge", "histogram"]

_STATES = ("ACTIVE", "INACTIVE", "KILLED")
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


@final
@dataclass(slots=True)
class _Family:
    kind: Kind
    help: str
    lines: list[str] = field(default_factory=list)


_FAMILIES: dict[str, tuple[Kind, str]] = {
    "sparkstorm_up": ("gauge", "Whether the driver answers."),
    "sparkstorm_status": ("gauge", "1 for the topology's status."),
    "sparkstorm_started_seconds": ("gauge", "When the run began, since 1970."),
    "sparkstorm_messages_emitted_total": ("counter", "Messages given to batches, with retries."),
    "sparkstorm_messages_acked_total": ("counter", "Messages with complete trees."),
    "sparkstorm_attempts_failed_total": ("counter", "Failed attempts, by reason."),
    "sparkstorm_messages_given_up_total": ("counter", "Messages that are not tried again."),
    "sparkstorm_dead_letters_total": ("counter", "Given-up messages that were kept."),
    "sparkstorm_untracked_failed_total": ("counter", "Failed tuples that belong to no message."),
    "sparkstorm_messages_pending": ("gauge", "Messages that are neither acked nor given up."),
    "sparkstorm_messages_waiting": ("gauge", "Failed messages that wait for their next attempt."),
    "sparkstorm_oldest_message_age_seconds": ("gauge", "The age of the oldest unfinished message."),
    "sparkstorm_batches_total": ("counter", "Committed batches."),
    "sparkstorm_rollbacks_total": ("counter", "Batches that were rolled back and run again."),
    "sparkstorm_batch_seconds": ("gauge", "The time of the last batch."),
    "sparkstorm_batch_target_seconds": ("gauge", "The time that a batch should take."),
    "sparkstorm_batch_messages": ("gauge", "The messages of the last batch."),
    "sparkstorm_batch_running_seconds": ("gauge", "For how long the running batch has run."),
    "sparkstorm_since_poll_seconds": ("gauge", "For how long no source was asked."),
    "sparkstorm_spout_since_call_seconds": ("gauge", "For how long a spout was not called."),
    "sparkstorm_since_commit_seconds": ("gauge", "For how long no batch was committed."),
    "sparkstorm_tuples_executed_total": ("counter", "Calls of execute, by the tuples' stream."),
    "sparkstorm_tuples_acked_total": ("counter", "Acked tuples, by the tuples' stream."),
    "sparkstorm_tuples_failed_total": ("counter", "Failed tuples, by the tuples' stream."),
    "sparkstorm_tuples_emitted_total": ("counter", "Emitted tuples, by stream."),
    "sparkstorm_tuples_transferred_total": ("counter", "Copies of emitted tuples, by stream."),
    "sparkstorm_busy_seconds_total": ("counter", "Time spent in a component's tasks."),
    "sparkstorm_capacity": ("gauge", "Share of 10 minutes in which the busiest task was busy."),
    "sparkstorm_execute_seconds": ("histogram", "Time inside of execute."),
    "sparkstorm_process_seconds": ("histogram", "Time from execute to the ack of a tuple."),
    "sparkstorm_complete_seconds": ("histogram", "Time from a message's plan to its ack."),
    "sparkstorm_component_failed_total": ("counter", "Failed tuples or messages, by reason."),
    "sparkstorm_user_total": ("counter", "A component's own counters."),
    "sparkstorm_user_observed": ("histogram", "A component's own histograms."),
    "sparkstorm_partition_lag": ("gauge", "Messages behind the end of the partition."),
    "sparkstorm_partition_lag_seconds": ("gauge", "For how long the first of these is there."),
    "sparkstorm_partition_seen_seconds": ("gauge", "The age of the partition's figures."),
    "sparkstorm_partition_committed": ("gauge", "All messages before this position are done."),
    "sparkstorm_partition_acked_beyond": ("gauge", "Done messages behind the committed position."),
    "sparkstorm_partition_in_flight": ("gauge", "Messages in a batch, or open after it."),
    "sparkstorm_partition_in_retry": ("gauge", "Failed messages that are tried again."),
    "sparkstorm_partition_expired_total": ("counter", "Positions that the source had lost."),
}
"""Every family: its kind, and a sentence for people."""


def exposition(controls: Mapping[str, Control]) -> str:
    """Return the metrics of topologies.

    Args:
        controls: the controls of topologies, by their ids. A topology whose driver does not answer
            shows as ``sparkstorm_up 0``.
    """
    page = _Page()
    for topology, control in controls.items():
        try:
            page.add(control)
        except WorldError:  # gone, or of another version
            page.sample("sparkstorm_up", {"topology": topology.rpartition("-")[0] or topology}, 0)
    return page.text()


@final
class _Page:
    """Collects samples by family: Prometheus wants the lines of a family together."""

    def __init__(self) -> None:
        self._families = {name: _Family(*facts) for name, facts in _FAMILIES.items()}

    def add(self, control: Control) -> None:
        """Add all samples of a topology."""
        topology, stand = control.topology(), control.situation()
        ten_minutes = {one.component: one for one in control.window("600").components}
        oldest = control.messages(limit=1).messages
        labels = {"topology": topology.name}
        self._add_situation(topology, stand, labels)
        self.sample(
            "sparkstorm_oldest_message_age_seconds",
            labels,
            max((one.age_secs for one in oldest), default=0.0),
        )
        for one in control.window(":all-time").components:
            self._add_component(one, ten_minutes[one.component].capacity, labels)
        for partition in stand.partitions:
            self._add_partition(partition, labels)

    def sample(self, name: str, labels: Mapping[str, str], value: float, suffix: str = "") -> None:
        """Add one line."""
        shown = ",".join(f'{key}="{_label(one)}"' for key, one in labels.items())
        self._families[name].lines.append(f"{name}{suffix}{{{shown}}} {_number(value)}")

    def text(self) -> str:
        """Return the page: families without a sample are left out."""
        return "".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for name, family in self._families.items():
            if family.lines:
                yield f"# HELP {name} {family.help}\n# TYPE {name} {family.kind}\n"
                yield from (f"{line}\n" for line in family.lines)

    def _add_situation(
        self, topology: TopologyView, stand: SituationView, labels: dict[str, str]
    ) -> None:
        self.sample("sparkstorm_up", labels, 1)
        for status in _STATES:
            self.sample(
                "sparkstorm_status", {**labels, "status": status}, float(status == stand.status)
            )
        for reason, count in stand.failures.items():
            self.sample("sparkstorm_attempts_failed_total", {**labels, "reason": reason}, count)
        for spout, secs in stand.spouts.items():
            self.sample("sparkstorm_spout_since_call_seconds", {**labels, "spout": spout}, secs)
        target = topology.config.get("topology.batch.target.secs", 0.0)
        values: dict[str, Any] = {
            "sparkstorm_started_seconds": topology.started,
            "sparkstorm_messages_emitted_total": stand.emitted,
            "sparkstorm_messages_acked_total": stand.acked,
            "sparkstorm_messages_given_up_total": stand.given_up,
            "sparkstorm_dead_letters_total": stand.dead_letters,
            "sparkstorm_untracked_failed_total": stand.untracked_failed,
            "sparkstorm_messages_pending": stand.pending,
            "sparkstorm_messages_waiting": stand.waiting,
            "sparkstorm_batches_total": stand.batches,
            "sparkstorm_rollbacks_total": stand.rollbacks,
            "sparkstorm_batch_seconds": stand.batch_secs,
            "sparkstorm_batch_target_seconds": target,
            "sparkstorm_batch_messages": stand.batch_messages,
            "sparkstorm_batch_running_seconds": stand.running_secs,
            "sparkstorm_since_poll_seconds": stand.polled_secs,
            "sparkstorm_since_commit_seconds": stand.committed_secs,
        }
        for name, value in values.items():
            self.sample(name, labels, value)

    def _add_component(
        self, one: ComponentMetricsView, capacity: float | None, labels: dict[str, str]
    ) -> None:
        labels = {**labels, "component": one.component}
        for given in one.inputs:
            named = {**labels, "source": given.component, "stream": given.stream}
            self.sample("sparkstorm_tuples_executed_total", named, given.executed)
            self.sample("sparkstorm_tuples_acked_total", named, given.acked)
            self.sample("sparkstorm_tuples_failed_total", named, given.failed)
        for out in one.outputs:
            named = {**labels, "stream": out.stream}
            self.sample("sparkstorm_tuples_emitted_total", named, out.emitted)
            self.sample("sparkstorm_tuples_transferred_total", named, out.transferred)
        self.sample("sparkstorm_busy_seconds_total", labels, one.process_secs)
        if capacity is not None:
            self.sample("sparkstorm_capacity", labels, capacity)
        self._add_histogram("sparkstorm_execute_seconds", labels, one.execute)
        self._add_histogram("sparkstorm_process_seconds", labels, one.process)
        self._add_histogram("sparkstorm_complete_seconds", labels, one.complete)
        for counter, value in one.counts.items():
            self.sample("sparkstorm_user_total", {**labels, "counter": counter}, value)
        for name, seen in one.observed.items():
            self._add_histogram("sparkstorm_user_observed", {**labels, "histogram": name}, seen)
        for reason, failed in one.failures.items():
            named = {**labels, "reason": reason}
            self.sample("sparkstorm_component_failed_total", named, failed)

    def _add_histogram(self, name: str, labels: dict[str, str], one: QuantilesView) -> None:
        if not one.count:
            return
        for bound, count in [*one.buckets, (float("inf"), one.count)]:
            self.sample(name, {**labels, "le": _number(bound)}, count, "_bucket")
        self.sample(name, labels, one.total, "_sum")
        self.sample(name, labels, one.count, "_count")

    def _add_partition(self, one: PartitionView, labels: dict[str, str]) -> None:
        labels = {**labels, "spout": one.spout, "partition": one.partition}
        values: Iterable[tuple[str, float]] = (
            ("lag", one.lag),
            ("lag_seconds", one.lag_secs),
            ("seen_seconds", one.seen_secs),
            ("committed", one.committed),
            ("acked_beyond", one.acked_beyond),
            ("in_flight", one.in_flight),
            ("in_retry", one.in_retry),
            ("expired_total", one.expired),
        )
        for name, value in values:
            self.sample(f"sparkstorm_partition_{name}", labels, value)


def _number(value: float) -> str:
    if not math.isfinite(value):  # a counter of the user's may be anything
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


def _label(value: str) -> str:
    """Return a label's value: a file's name need not be UTF-8, the page has to."""
    return value.encode(errors="backslashreplace").decode().translate(_ESCAPES)
