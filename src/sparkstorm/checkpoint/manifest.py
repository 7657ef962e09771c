"""The manifest: the facts on which a checkpoint and its topology must agree."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import final

from sparkstorm.checkpoint.files import CheckpointFiles
from sparkstorm.checkpoint.seal import read_sealed, write_sealed
from sparkstorm.components.spout import PartitionedSpout
from sparkstorm.components.stateful import StatefulBolt
from sparkstorm.errors import CheckpointError
from sparkstorm.planning.plan import Plan, StageKind
from sparkstorm.topology.graph import ComponentSpec
from sparkstorm.topology.grouping import All, describe

__all__ = ["KeptState", "Manifest"]

_NAME = "manifest.json"
_VERSION = 1

_MEND = (
    "It says what the state belongs to. Restore it from a backup; or, if the topology is what it "
    "was, delete it, set topology.partitions to the number that the topology had, and start again"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KeptState:
    """The facts on which the state of one component depends.

    Attributes:
        tasks: its number of tasks; the state is divided by task.
        stage: the number of its stage among the query's stages with state, from 0: Spark names
            their stores by this number.
        groupings: how its tuples find their task, except by copies to all tasks; with one task the
            groupings do not matter.
        kind: whether the state is by key, with its backend, or in attributes.
        first: the number of its first task in the topology; 0 in manifests of older versions.
    """

    tasks: int
    stage: int
    kind: str
    groupings: tuple[str, ...] = ()
    first: int = 0

    @classmethod
    def of(cls, plan: Plan, component: str) -> "KeptState":
        """Return the facts of a stateful component of a plan."""
        edges = plan.spec(component).subscriptions
        groupings = {
            describe(edge.grouping) for edge in edges if not isinstance(edge.grouping, All)
        }
        stage = next(
            number
            for number, levels in enumerate(_state_stages(plan))
            if any(component in plan.levels[level].components for level in levels)
        )
        by_key = isinstance(plan.spec(component).component, StatefulBolt)
        backend = plan.settings(component).state_backend
        return cls(
            tasks=len(plan.tasks[component]),
            stage=stage,
            kind=f"by key in {backend}" if by_key else "as attributes",
            groupings=tuple(sorted(groupings)),
            first=plan.tasks[component].start,
        )

    def differences(self, new: "KeptState") -> Iterator[str]:
        """Describe the component's former facts, where the new facts differ."""
        if new.tasks != self.tasks:
            yield f"{self.tasks} tasks (now {new.tasks})"
        if new.kind != self.kind:
            yield f"what it keeps {self.kind} (now {new.kind})"
        if new.stage != self.stage:
            yield (
                f"its place in stage {self.stage + 1} of those with state (now {new.stage + 1}; "
                f"sparkstorm explain shows them)"
            )
        if new.groupings != self.groupings and self.tasks > 1:
            before, now = (", ".join(kept.groupings) or "none" for kept in (self, new))
            yield f"tuples grouped by {before} (now {now}), which other tasks would get"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The facts on which state and progress depend.

    Attributes:
        topology: the topology's name.
        partitions: partitions of every exchange; Spark's state is divided by partition.
        spouts: the spouts, with their class names and, if partitioned, how many tasks share the
            source.
        state: the components with state.
        stages: how many stages of the query have state; Spark refuses any other number.
    """

    topology: str
    partitions: int
    spouts: Mapping[str, str] = field(default_factory=dict)
    state: Mapping[str, KeptState] = field(default_factory=dict)
    stages: int = 0

    @classmethod
    def of(cls, plan: Plan) -> "Manifest":
        """Return the manifest of a plan."""
        return cls(
            topology=plan.name,
            partitions=plan.partitions,
            spouts={spec.id: _kind(spec) for spec in plan.topology.spouts},
            state={name: KeptState.of(plan, name) for name in plan.stateful_components()},
            stages=len(_state_stages(plan)),
        )

    @classmethod
    def read(cls, files: CheckpointFiles) -> "Manifest | None":
        """Return the manifest of a checkpoint, or None for a new checkpoint."""
        data = read_sealed(files, _NAME, _MEND)
        if data is None:
            return None
        try:
            values = json.loads(data)
            if values.pop("version") > _VERSION:
                raise _of_later_version()
            kept = {name: _kept_state(facts) for name, facts in values.pop("state").items()}
            return cls(**values, state=kept)
        except (ValueError, TypeError, KeyError) as error:
            raise CheckpointError(
                f"the checkpoint's file sparkstorm/{_NAME} is unreadable: {error!r}. {_MEND}"
            ) from error

    def write(self, files: CheckpointFiles) -> None:
        """Write the manifest into a new checkpoint."""
        data = json.dumps({"version": _VERSION, **asdict(self)}, indent=1)
        write_sealed(files, _NAME, data.encode())

    def check(self, plan: Plan, where: str) -> None:
        """Compare with the topology that is to run on this checkpoint.

        The code of bolts may change, and everything about bolts without state. The stored state and
        progress must stay where the topology looks for them.

        Raises:
            CheckpointError: names the differences and the mend.
        """
        for fault in self._faults(Manifest.of(plan)):
            raise CheckpointError(
                f"the checkpoint {where} {fault}, or use another checkpoint folder, or delete "
                f"{where} to start from nothing"
            )

    def _faults(self, new: "Manifest") -> Iterator[str]:
        if new.topology != self.topology:
            yield (
                f"belongs to the topology {self.topology!r}, not to {new.topology!r}: give it "
                f"that name"
            )
        if new.partitions != self.partitions:
            yield (
                f"was made with {self.partitions} partitions, but topology.partitions asks for "
                f"{new.partitions}: leave it out"
            )
        for name, kept in self.state.items():
            if name not in new.state:
                yield (
                    f"holds the state of {name!r}, but the topology has no such stateful bolt: "
                    f"change it back"
                )
                return
            for difference in kept.differences(new.state[name]):
                yield f"holds the state of {name!r} with {difference}: change it back"
        if new.stages != self.stages:
            added = ", ".join(map(repr, sorted(new.state.keys() - self.state.keys())))
            yield (
                f"was made by a query with {self.stages} stages that keep state, and with {added} "
                f"there would be {new.stages}, which Spark refuses: leave {added} out"
            )
        for name, kind in self.spouts.items():
            if new.spouts.get(name) != kind:
                yield (
                    f"holds the progress of spout {name!r} ({kind}), which the topology does not "
                    f"have: change it back"
                )


def _of_later_version() -> CheckpointError:
    return CheckpointError(
        "a later version of sparkstorm has written the checkpoint: run the topology with that "
        "version, or give another checkpoint folder"
    )


def _state_stages(plan: Plan) -> list[tuple[int, ...]]:
    """Return the levels of each stage with state, in the order of the query."""
    return [stage.levels for stage in plan.stages if stage.kind is StageKind.STATE]


def _kept_state(facts: Mapping[str, object]) -> KeptState:
    kept = KeptState(**facts)  # type: ignore[arg-type]
    return replace(kept, groupings=tuple(kept.groupings))


def _kind(spec: ComponentSpec) -> str:
    name = type(spec.component).__name__
    return f"{name} × {spec.parallelism}" if isinstance(spec.component, PartitionedSpout) else name
