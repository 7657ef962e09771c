"""A plan for people: as text, and as a Mermaid picture."""

from collections.abc import Iterator

from sparkstorm.planning.advice import advice_on
from sparkstorm.planning.plan import ACKER, Plan, Stage, StageKind, StreamKey
from sparkstorm.topology.grouping import describe

__all__ = ["explain", "mermaid"]

_WHERE = {
    StageKind.READ: "read: the data source, one Spark partition each",
    StageKind.MAP: "map: mapInArrow",
    StageKind.STATE: "state: transformWithState",
    StageKind.ACK: "ack: XOR by root, mapInArrow",
}


_SHAPES = {(True, False): ("([", "])"), (False, False): ("[", "]"), (False, True): ("[(", ")]")}
"""Mermaid's brackets by (is a spout, is stateful): a pill, a box, a cylinder."""


def explain(plan: Plan) -> str:
    """Return the plan as text: the stages in order, with components, streams and routes."""
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    tracking = f"tracked by {_count(len(plan.ackers), 'acker')}" if plan.tracked else "untracked"
    once = ", exactly once" if plan.exactly_once else ""
    yield f"topology {plan.name}: {_count(plan.partitions, 'partition')}, {tracking}{once}"
    for number, stage in enumerate(plan.stages):
        if number:
            yield "  ═══ exchange by partition ═══"
        yield f"stage {number} ({_WHERE[stage.kind]})"
        yield from _stage_lines(plan, stage)
    for advice in advice_on(plan):
        yield f"note: {advice}"


def _stage_lines(plan: Plan, stage: Stage) -> Iterator[str]:
    if stage.kind is StageKind.ACK:
        yield f"  {ACKER}  tasks {_tasks(plan.ackers)}"
    for index in stage.levels:
        for name in plan.levels[index].components:
            spec = plan.spec(name)
            extras = f", {spec.concurrency} at a time" if spec.concurrency > 1 else ""
            state = ", stateful" if spec.is_stateful else ""
            rate = None if spec.is_spout else plan.tick_secs(name)
            ticks = f", a tick every {rate:g} s" if rate else ""
            kind = f"{type(spec.component).__name__}, tasks {_tasks(plan.tasks[name])}"
            yield f"  level {index}  {name}: {kind}{state}{extras}{ticks}"
            for stream in spec.streams:
                yield from _stream_lines(plan, StreamKey(name, stream))


def _stream_lines(plan: Plan, key: StreamKey) -> Iterator[str]:
    fields = ", ".join(
        f"{field.name} {field.type}" if field.type else field.name
        for field in plan.stream(key).fields
    )
    direct = " (direct)" if plan.stream(key).direct else ""
    yield f"    {key.stream}({fields}){direct}"
    for route in plan.routes[key]:
        yield f"      → {route.target} by {describe(route.grouping)}"
    if not plan.routes[key]:
        staged = key.component in plan.committers
        yield "      → committed by the driver" if staged else "      → nobody"


def mermaid(plan: Plan) -> str:
    """Return the plan as a Mermaid flowchart, one box per stage."""
    lines = ["flowchart LR"]
    for number, stage in enumerate(plan.stages):
        lines.append(f'  subgraph stage{number}["stage {number}: {stage.kind.value}"]')
        lines += [f"    {line}" for line in _nodes(plan, stage)]
        lines.append("  end")
    for key, routes in sorted(plan.routes.items()):
        for route in routes:
            label = describe(route.grouping)
            if key.stream != "default":
                label = f"{key.stream}: {label}"
            lines.append(f'  {_id(key.component)} -- "{label}" --> {_id(route.target)}')
    if plan.tracked:
        lines += [
            f"  {_id(name)} -.-> {_id(ACKER)}" for level in plan.levels for name in level.components
        ]
    return "\n".join(lines) + "\n"


def _nodes(plan: Plan, stage: Stage) -> Iterator[str]:
    if stage.kind is StageKind.ACK:
        yield f'{_id(ACKER)}(("{ACKER} × {len(plan.ackers)}"))'
    for index in stage.levels:
        for name in plan.levels[index].components:
            text = f"{name} × {len(plan.tasks[name])}".replace('"', "#quot;")
            spec = plan.spec(name)
            opening, closing = _SHAPES[spec.is_spout, spec.is_stateful]
            yield f'{_id(name)}{opening}"{text}"{closing}'


def _id(name: str) -> str:
    # Mermaid takes only letters, digits and underscores; escapes keep different ids different.
    return "c_" + "".join(c if c.isalnum() else f"_{ord(c):x}_" for c in name)


def _tasks(tasks: range) -> str:
    return str(tasks.start) if len(tasks) == 1 else f"{tasks.start}–{tasks.stop - 1}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
