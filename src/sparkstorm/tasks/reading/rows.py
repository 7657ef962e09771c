"""The rows of a load: the tuples of its messages, from a split or from a packet."""

from dataclasses import dataclass
from typing import final

import numpy as np

from sparkstorm.acking.ids import U64
from sparkstorm.acking.lineage import Indexes, Lineage
from sparkstorm.components.spout import PartitionedSpout
from sparkstorm.errors import InternalError
from sparkstorm.metrics import skipped_in
from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.columns import Column
from sparkstorm.packets.load import Load
from sparkstorm.packets.packet import Packet
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.streams import Stream
from sparkstorm.tasks.reading.splits import Gathered, Misfit, read_split
from sparkstorm.tasks.routing import Tasks
from sparkstorm.tasks.tracing import followed_rows

__all__ = ["LoadRows", "gather", "skip_counters"]


@final
@dataclass(frozen=True, slots=True)
class LoadRows:
    """The rows of a load in the form for the dispatcher (:class:`Emitted`)."""

    key: StreamKey
    stream: Stream
    made: dict[str, Column]
    parents: Indexes
    direct: Tasks | None

    @classmethod
    def of(
        cls,
        plan: Plan,
        load: Load,
        columns: dict[str, Column],
        positions: Indexes,
        parents: Indexes,
    ) -> "LoadRows":
        """Return the rows at these positions of a load."""
        key = StreamKey(load.component, load.stream)
        direct = None if load.direct is None else np.frombuffer(load.direct, np.int32)[positions]
        return cls(key, plan.stream(key), columns, parents, direct)

    def __len__(self) -> int:
        return len(self.parents)

    def columns(self) -> dict[str, Column]:
        """Return the values by field."""
        return self.made

    def parents_by_row(self) -> Indexes:
        """Return each row's root, by its number among the started roots."""
        return self.parents

    def direct_tasks(self) -> Tasks | None:
        """Return the tasks picked by the spout, for a direct stream."""
        return self.direct

    def followed(self, batch: BatchInfo, lineage: Lineage) -> U64:
        """Return the roots of messages whose payload has a followed text, ascending."""
        numbers = self.parents[followed_rows(batch, self.made)]
        return np.unique(lineage.roots[numbers[numbers >= 0]])

    def take(self, rows: Indexes) -> "LoadRows":
        """Return the rows at these positions."""
        columns = {name: column.take(rows) for name, column in self.made.items()}
        direct = None if self.direct is None else self.direct[rows]
        return LoadRows(self.key, self.stream, columns, self.parents[rows], direct)


def gather(plan: Plan, load: Load) -> Gathered:
    """Read a load: return columns, each row's position among the messages, and misfits."""
    stream = plan.stream(StreamKey(load.component, load.stream))
    names = stream.names
    if load.packet is not None:
        made, unread = Packet.decode(load.packet).read()
        bad = {n: Misfit(f"field {names[at]!r}: {why}") for n, (at, why) in unread.items()}
        rows = np.delete(np.arange(load.count), [*bad])
        return dict(zip(names, [c.take(rows) for c in made], strict=True)), rows, bad
    spout = plan.spec(load.component).component
    if load.split is None or not isinstance(spout, PartitionedSpout):
        raise InternalError(f"a load of {load.component!r} has nothing to read")
    return read_split(spout, load.split, stream)


def skip_counters(plan: Plan, load: Load, count: int) -> tuple[tuple[str, float], ...]:
    """Return the counters for ``count`` positions without a message."""
    if not count:
        return ()
    spout, split, names = plan.spec(load.component).component, load.split, []
    if isinstance(spout, PartitionedSpout) and split is not None:
        partition = spout.partition(split)
        names = [skipped_in(partition)] if partition else []
    return tuple((name, float(count)) for name in ("skipped", *names))
