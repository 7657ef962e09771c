"""One message through a topology, in this process: nothing is committed, acked or written."""

import secrets
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TypeAlias, final

from sparkstorm.acking.ids import make_root
from sparkstorm.acking.tally import RootRange
from sparkstorm.batches.job_result import Answers
from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.errors import ConfigError
from sparkstorm.local.jobs import LocalJobs
from sparkstorm.local.watching import Watcher, watched
from sparkstorm.packets.batch_info import BatchInfo, Retried
from sparkstorm.packets.load import Load
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.sources.packing import encode_rows, packed_load
from sparkstorm.sources.replayed.replayed_letter import LetterReader, MisfitError
from sparkstorm.state.stores import MemoryStore
from sparkstorm.topology.graph import Topology
from sparkstorm.verdicts import Failure

__all__ = ["Ending", "OneMessage", "OpenStore", "way_to"]

OpenStore: TypeAlias = Callable[[str], MemoryStore]
"""Returns the committed state of a task by its name, ``component/index``."""


@final
@dataclass(frozen=True, slots=True)
class Ending:
    """The end of the message: a failure, or open (held by a bolt), or else acked."""

    failure: Failure | None = None
    is_open: bool = False


@final
class OneMessage:
    """The message of a dead letter as the only message of a batch, run as often as asked.

    No spout, committer or dead letter takes part, since there is no coordinator. Bolts run for
    real, each run with fresh copies; the state of each run is dropped.

    Args:
        plan: the topology's plan, with at least one acker.
        letter: the message.
        until: the last component that gets tuples, with all components before; None for all.
        open_store: returns the committed state of tasks; without it, state begins empty.

    Raises:
        ConfigError: the letter is no message of the topology, or does not reach ``until``.
    """

    def __init__(
        self,
        plan: Plan,
        letter: DeadLetter,
        *,
        until: str | None = None,
        open_store: OpenStore | None = None,
    ) -> None:
        self.plan = plan if until is None else _only(plan, way_to(plan.topology, until))
        self._stores: dict[str, MemoryStore] = {}
        self._open_store = open_store
        self._load = _load_of(self.plan, letter)
        self._batch = _batch_of(letter, self._load)
        if until is not None and letter.spout not in way_to(plan.topology, until):
            raise ConfigError(
                f"messages of {letter.spout!r} do not reach {until!r}: sparkstorm explain shows "
                f"the ways"
            )

    def run(self, watcher: Watcher) -> Ending:
        """Run the message once.

        Raises:
            ComponentError: a bolt cannot be prepared, or broke a rule that stops a topology.
        """
        with ExitStack() as stack:
            specs = dict(self.plan.topology.components)
            for spec in self.plan.topology.bolts:
                copy = stack.enter_context(watched(spec.component, watcher))  # type: ignore[arg-type]
                # One call after the other: a debugger follows one thread.
                specs[spec.id] = replace(spec, component=copy, concurrency=1)
            plan = replace(self.plan, topology=Topology(specs))
            jobs = LocalJobs(plan, self._stores, self._open_store)
            stack.callback(jobs.close)
            result = jobs.run(self._batch, {0: [self._load]})
            jobs.roll_back()
            return self._ending(result.answers(self._batch.number, len(plan.ackers)))

    def _ending(self, answers: Answers) -> Ending:
        """Return the end of the message: bolts may also end messages held in their state."""
        root = self._batch.ranges[0].first
        failures = [result.failed[root] for result in answers.results if root in result.failed]
        is_open = any(root in result.open_roots for result in answers.results)
        return Ending(failures[0] if failures else None, is_open)


def way_to(topology: Topology, component: str) -> set[str]:
    """Return a component and all components before it.

    Raises:
        ConfigError: there is no such component.
    """
    if component not in topology.components:
        known = ", ".join(spec.id for spec in topology.bolts)
        raise ConfigError(f"the topology has no component {component!r}: its bolts are {known}")
    found, new = set[str](), {component}
    while new:
        found |= new
        edges = (edge for name in new for edge in topology.components[name].subscriptions)
        new = {edge.source for edge in edges} - found
    return found


def _only(plan: Plan, components: set[str]) -> Plan:
    """Return the plan without routes to other components; tasks keep their numbers.

    A stream without a reader is never encoded, so values that do not fit it would not show. Taps
    read these streams instead.
    """
    routes = {
        key: tuple(route for route in routes if route.target in components)
        for key, routes in plan.routes.items()
    }
    read = {key for key, before in plan.routes.items() if before and key.component in components}
    return replace(plan, routes=routes, taps=plan.taps | read)


def _load_of(plan: Plan, letter: DeadLetter) -> Load:
    try:
        message = LetterReader(plan).message(letter)
    except MisfitError as error:
        raise ConfigError(
            f"the dead letter {letter.id} is no message of this topology: {error}"
        ) from error
    key = StreamKey(letter.spout, letter.stream)
    body = encode_rows(plan.stream(key), [message.row])
    direct = [] if message.direct is None else [message.direct]
    first = make_root(message.task, 0)
    return packed_load(key, message.task, body, first=first, lane=0, direct=direct)


def _batch_of(letter: DeadLetter, load: Load) -> BatchInfo:
    first = load.first or 0
    return BatchInfo(
        number=0,
        time=letter.last_time,  # bolts decide by the batch's time
        run=secrets.token_hex(4),
        ranges=(RootRange(first, 1),),
        retried=(Retried(first, 1, letter.attempts),) if letter.attempts > 1 else (),
    )
