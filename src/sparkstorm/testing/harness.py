"""Run a whole topology on fixed input and look at all tuples that its components emitted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

from sparkstorm.clock import Clock
from sparkstorm.config import Config
from sparkstorm.errors import TopologyError
from sparkstorm.local.runner import LocalRunner
from sparkstorm.metrics import Statistics
from sparkstorm.planning.advice import advice_on
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.testing.clock import ManualClock
from sparkstorm.testing.sources import LogSpout
from sparkstorm.testing.spouts import FixedSpout
from sparkstorm.testing.waiting import wait_until
from sparkstorm.texts.logs import logger_of
from sparkstorm.topology.graph import Topology

__all__ = ["Completed", "Emitted", "complete_topology", "with_sources"]

_logger = logger_of(__name__)

_LONGEST_SECS = 30 * 86_400.0
"""How long nothing may happen, by the clock, before the messages are left as they are."""

Emitted: TypeAlias = tuple[str, tuple[Any, ...]]
"""(stream, values) of one emitted tuple."""


@final
@dataclass(frozen=True, slots=True)
class Completed:
    """The result of a run: all emitted tuples, by component, and the final statistics."""

    emitted: Mapping[str, list[Emitted]]
    statistics: Statistics

    def __getitem__(self, component: str) -> list[Emitted]:
        return self.emitted[component]

    def values(self, component: str, stream: str = "default") -> list[tuple[Any, ...]]:
        """Return the values that a component emitted to a stream, in order."""
        return [values for name, values in self.emitted[component] if name == stream]


def complete_topology(
    topology: Topology,
    *,
    mock_sources: Mapping[str, Sequence[Sequence[Any]]] | None = None,
    config: Config | None = None,
    partitions: int = 2,
    clock: Clock | None = None,
) -> Completed:
    """Run a topology in this process until every message has ended; return all emitted tuples.

    Args:
        topology: the topology.
        mock_sources: for a spout's id, rows to emit instead of the spout's (Storm's MockedSources).
        config: the settings.
        partitions: how many partitions to play; results must not depend on the number.
        clock: the time; by default a clock of the run's own. A :class:`ManualClock` is moved on
            while messages wait for a retry, a window or a time-out, so this takes no time. Any
            other clock is waited for.

    Messages that nothing can end, since time-outs are off, are still pending in the end.

    Raises:
        TopologyError: ``mock_sources`` names a component that is no spout of the topology.
        TimeoutError: by a clock that cannot be moved, messages are pending for too long.
    """
    clock = clock or ManualClock()
    # Exactly-once repeats batches as they were decided, so mock sources must read rows again.
    once = config is not None and config.processing_guarantee == "exactly-once"
    topology = with_sources(topology, mock_sources or {}, replayable=once)
    emitted: dict[str, list[Emitted]] = {name: [] for name in topology.components}

    def on_tap(key: StreamKey, task: int, rows: list[tuple[Any, ...]]) -> None:
        emitted[key.component] += [(key.stream, tuple(row)) for row in rows]

    with LocalRunner(
        topology,
        config=config,
        partitions=partitions,
        taps=tuple(topology.components),
        clock=clock,
        on_tap=on_tap,
    ) as runner:
        for advice in advice_on(runner.plan):  # a test is where an author first sees wrong counts
            _logger.warning("%s", advice)
        if isinstance(clock, ManualClock):
            _run_by(clock, runner)
        else:
            runner.run_until_idle()
            wait_until(lambda: not _is_owed(runner), check=runner.run_until_idle)
        statistics = runner.statistics()
    return Completed(emitted, statistics)


def _run_by(clock: ManualClock, runner: LocalRunner) -> None:
    """Run until every message has ended, and move the clock whenever nothing else happens."""
    finest, timeout = _finest_step(runner.plan)
    statistics = runner.run_until_idle()
    step = waited = 0.0
    while _is_owed(runner) and waited < _LONGEST_SECS:
        # A leap over a time-out could end messages that a window or a retry is about to complete.
        # After the time-out no tuple is held: only retries are waited for.
        step = finest if waited < timeout else max(finest, 2 * step)
        clock.advance(step)
        before, statistics = statistics, runner.run_until_idle()
        is_still = _ends_of(before) == _ends_of(statistics)
        waited = waited + step if is_still else 0.0


def _is_owed(runner: LocalRunner) -> bool:
    """Whether a message is pending, or a spout that is not at its end may emit it again."""
    statistics = runner.statistics()
    return bool(statistics.pending or (statistics.left_failed and not runner.coordinator.drained))


def _finest_step(plan: Plan) -> tuple[float, float]:
    """Return the seconds of a small step of the clock, and how long the steps stay small."""
    config = plan.config
    ticks = [rate for spec in plan.topology.bolts if (rate := plan.tick_secs(spec.id))]
    timeout = config.message_timeout_secs
    finest = max(min([timeout / 100, *ticks]), timeout / 1_000)
    return finest, 1.2 * timeout if config.enable_message_timeouts else 0.0


def _ends_of(statistics: Statistics) -> tuple[int, ...]:
    """Return the counts that change when a message comes or ends."""
    counts = (statistics.emitted, statistics.acked, statistics.failed, statistics.given_up)
    return (*counts, statistics.pending)


def with_sources(
    topology: Topology,
    sources: Mapping[str, Sequence[Sequence[Any]]],
    *,
    replayable: bool = False,
) -> Topology:
    """Return the topology with fixed rows in the place of some spouts.

    Args:
        topology: the topology.
        sources: rows, by the spout's id.
        replayable: whether the rows may be read again, as exactly-once requires.
    """
    specs = dict(topology.components)
    for name, rows in sources.items():
        spec = specs.get(name)
        if spec is None or not spec.is_spout:
            spouts = ", ".join(spec.id for spec in topology.spouts)
            raise TopologyError(f"{name!r} is not a spout of the topology; its spouts: {spouts}")
        kind = LogSpout if replayable else FixedSpout
        specs[name] = replace(spec, component=kind(rows, dict(spec.streams)))
    return Topology(specs)
