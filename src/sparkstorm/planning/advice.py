"""Advice: what is allowed in a topology, and rarely meant."""

from collections.abc import Callable, Iterator

from sparkstorm.components.stateful import StatefulBolt
from sparkstorm.components.wiring import Wiring
from sparkstorm.planning.plan import Plan
from sparkstorm.topology.graph import ComponentSpec
from sparkstorm.topology.wiring import wiring_of

__all__ = ["advice_on"]


def advice_on(plan: Plan) -> Iterator[str]:
    """Yield a sentence for each thing in a plan that its author should know of."""
    for spec in plan.topology.bolts:
        bolt = spec.component
        # The state of bolts that come with sparkstorm is their own affair.
        is_theirs = isinstance(bolt, StatefulBolt) and not _is_ours(bolt.execute)
        if is_theirs and spec.parallelism > 1:
            yield from _scattered_state(spec, wiring_of(plan.topology.components, spec.id))


def _scattered_state(spec: ComponentSpec, wiring: Wiring) -> Iterator[str]:
    for name, edge, fields in wiring.inputs():
        if not edge.keeps_together(fields):
            yield (
                f"bolt {spec.id!r} keeps state in {spec.parallelism} tasks, and reads {name!r} by "
                f"a grouping that sends equal tuples to any of them: each task sees a part, and a "
                f"count by key would be wrong. If the state is by key, use fields_grouping"
            )


def _is_ours(method: Callable[..., object]) -> bool:
    return method.__module__.startswith("sparkstorm.")
