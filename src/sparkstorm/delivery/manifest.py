"""What a checkpoint must agree on with the topology that runs on it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from sparkstorm.components.spout import PartitionedSpout
from sparkstorm.delivery.files import CheckpointFiles
from sparkstorm.errors import CheckpointError
from sparkstorm.planning.plan import Plan
from sparkstorm.topology.graph import ComponentSpec

__all__ = ["Manifest"]

_NAME = "manifest.json"
_VERSION = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The facts that state and progress depend on.

    Attributes:
        topology: the topology's name.
        partitions: partitions of every exchange; Spark's state is cut by it.
        spouts: the spouts, with their class names and, if they are partitioned, how many tasks
            share the source.
        state: the components that keep state, with their number of tasks.
    """

    topology: str
    partitions: int
    spouts: Mapping[str, str] = field(default_factory=dict)
    state: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan) -> "Manifest":
        """Return the manifest of a plan."""
        return cls(
            topology=plan.name,
            partitions=plan.partitions,
            spouts={spec.id: _kind(spec) for spec in plan.topology.spouts},
            state={name: len(plan.tasks[name]) for name in plan.stateful_components()},
        )

    @classmethod
    def read(cls, files: CheckpointFiles) -> "Manifest | None":
        """Return the manifest of a checkpoint, or None for a new one."""
        data = files.read(_NAME)
        if data is None:
            return None
        try:
            values = json.loads(data)
            values.pop("version")
            return cls(**values)
        except (ValueError, TypeError, KeyError) as error:
            raise CheckpointError(f"the checkpoint's manifest is unreadable: {error}") from error

    def write(self, files: CheckpointFiles) -> None:
        """Write the manifest into a new checkpoint."""
        values = {name: getattr(self, name) for name in self.__slots__}
        files.write(_NAME, json.dumps({"version": _VERSION, **values}, indent=1).encode())

    def check(self, plan: Plan, where: str) -> None:
        """Compare with the topology that is to run on this checkpoint.

        Raises:
            CheckpointError: naming what differs and what to do.
        """
        new = Manifest.of(plan)
        mend = f"use another checkpoint folder, or delete {where} to start from nothing"
        if new.topology != self.topology:
            raise CheckpointError(
                f"the checkpoint {where} belongs to the topology {self.topology!r}, not to "
                f"{new.topology!r}: {mend}"
            )
        if new.partitions != self.partitions:
            raise CheckpointError(
                f"the checkpoint {where} was made with {self.partitions} partitions, but "
                f"topology.partitions asks for {new.partitions}: leave it out, or {mend}"
            )
        for name, tasks in self.state.items():
            if new.state.get(name) != tasks:
                now = f"{new.state[name]} tasks" if name in new.state else "no such stateful bolt"
                raise CheckpointError(
                    f"the checkpoint {where} holds the state of {name!r} with {tasks} tasks, but "
                    f"the topology has {now}: change it back, or {mend}"
                )
        for name, kind in self.spouts.items():
            if new.spouts.get(name, kind) != kind or name not in new.spouts:
                raise CheckpointError(
                    f"the checkpoint {where} holds the progress of spout {name!r} ({kind}), which "
                    f"the topology does not have: change it back, or {mend}"
                )


def _kind(spec: ComponentSpec) -> str:
    name = type(spec.component).__name__
    return f"{name} × {spec.parallelism}" if isinstance(spec.component, PartitionedSpout) else name
