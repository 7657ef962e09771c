"""Random topologies whose bolts keep a diary, to check the engine's verdicts against.

Every tuple has a name (``uid``) that tells its origin. Every bolt writes down the names of its
inputs, what it did with each, and the names of the tuples that it caused. The diaries of committed
runs are the truth that :mod:`tests.tools.truth` reads.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from types import MappingProxyType
from typing import Any, final

from sparkstorm.components.bolt import BasicBolt, Bolt
from sparkstorm.components.collector import BasicCollector
from sparkstorm.components.stateful import StatefulBolt
from sparkstorm.config import Config
from sparkstorm.streams import Stream
from sparkstorm.testing.internal.cluster import TaskRun
from sparkstorm.testing.internal.shared import Shared
from sparkstorm.testing.sources import LogSpout, RequeueSpout
from sparkstorm.topology.builder import BoltDeclarer, TopologyBuilder
from sparkstorm.topology.graph import Topology
from sparkstorm.topology.grouping import CustomGrouping
from sparkstorm.tuples import Tuple

__all__ = ["Child", "Diary", "Entry", "Habits", "RandomTopology", "Some", "random_topology"]

_FIELDS = "uid string, key long"
_OUTPUTS: Mapping[str, str | Sequence[str] | Stream] = MappingProxyType(
    {
        "default": _FIELDS,
        "loose": ["uid", "key"],
        "direct": Stream(_FIELDS, direct=True),
    }
)
_GROUPINGS = (
    "shuffle",
    "fields",
    "partial_key",
    "all",
    "global",
    "none",
    "local_or_shuffle",
    "custom",
)


@final
@dataclass(frozen=True, slots=True)
class Child:
    """A tuple that was caused: its stream, its name and, if it was sent direct, the receiver."""

    stream: str
    uid: str
    to: str | None = None


@final
@dataclass(slots=True)
class Entry:
    """A task's treatment of one tuple.

    Attributes:
        component: the bolt.
        task: the task.
        uid: the tuple's name.
        status: ``open``, ``acked``, ``failed`` or ``raised``.
        children: the tuples that were anchored to the tuple.
        counted: the key under which the bolt counted the tuple in its state.
    """

    component: str
    task: int
    uid: str
    status: str = "open"
    children: list[Child] = field(default_factory=list)
    counted: tuple[int, int] | None = None


@final
class Diary(Shared):
    """The entries of each run of a task."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: dict[TaskRun, list[Entry]] = {}
        self._now: list[Entry] = []
        self._ticks = 0

    def begin(self, run: TaskRun) -> None:
        """Start a run: all further entries belong to the run."""
        self._now = self._runs[run] = []

    def note(self, component: str, task: int, uid: str) -> Entry:
        """Write down that a task received a tuple."""
        entry = Entry(component, task, uid)
        self._now.append(entry)
        return entry

    def take(self, runs: Sequence[TaskRun]) -> list[Entry]:
        """Return the entries of these runs, and forget all other entries."""
        taken = [entry for run in runs for entry in self._runs.get(run, ())]
        self._runs.clear()
        return taken

    def tick(self) -> int:
        """Return a number that never comes again, for bolts that are not deterministic."""
        self._ticks += 1
        return self._ticks


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How a random bolt treats tuples: the tuple's name decides, by these likelihoods.

    Attributes:
        seed: makes bolts differ.
        fails: calls ``fail``.
        raises: raises an exception.
        forgets: neither acks nor fails.
        loose: also emits a tuple without anchors.
        children: the most tuples that the bolt emits.
        joins: at the batch's end the bolt emits tuples anchored to so many inputs; 0 for never.
        erratic: emits something else each time.
        direct: the bolts that read the direct stream.
    """

    seed: int
    fails: float = 0.0
    raises: float = 0.0
    forgets: float = 0.0
    loose: float = 0.0
    children: int = 1
    joins: int = 0
    erratic: bool = False
    direct: tuple[str, ...] = ()

    def draw(self, tup: Tuple, what: str) -> float:
        """Return a number from 0 to 1, the same for the same tuple and attempt."""
        return _hash(f"{self.seed}/{tup['uid']}/{tup.attempt}/{what}") / 2**64


@final
class Some(CustomGrouping):
    """Sends to one task or to two, as the tuple's name decides."""

    def choose_tasks(
        self, values: Sequence[Any], tasks: Sequence[int], sequence: int
    ) -> Sequence[int]:
        """Return the tasks."""
        chosen = _hash(values[0])
        count = self.copies(values[0], len(tasks))
        return [tasks[(chosen + n) % len(tasks)] for n in range(count)]

    @staticmethod
    def copies(uid: str, tasks: int) -> int:
        """Return how many tasks get a tuple of this name."""
        return min(tasks, 1 + _hash(uid) // 7 % 2)


class _Drawn(Bolt):
    """Acts by its habits, and keeps the diary."""

    outputs = _OUTPUTS

    def __init__(self, habits: Habits, diary: Diary) -> None:
        self._habits = habits
        self._diary = diary
        self._held: list[tuple[Tuple, Entry]] = []

    def execute(self, tup: Tuple) -> None:
        """Count, emit, raise, fail, forget, hold or ack."""
        habits, context = self._habits, self.context
        entry = self._diary.note(context.component, context.task, tup["uid"])
        self.count(tup, entry)
        self._emit(tup, entry)
        if habits.draw(tup, "raises") < habits.raises:
            entry.status, entry.counted = "raised", None
            raise RuntimeError("drawn")
        if habits.draw(tup, "fails") < habits.fails:
            entry.status = "failed"
            self.collector.fail(tup, "drawn")
        elif habits.draw(tup, "forgets") >= habits.forgets:
            if habits.joins:
                self._held.append((tup, entry))
            else:
                self._ack(tup, entry)

    def count(self, tup: Tuple, entry: Entry) -> None:
        """Count in state, if the bolt has one."""

    def finish_batch(self) -> None:
        """Join the held tuples, some at a time."""
        size = self._habits.joins
        while self._held:
            some, self._held = self._held[:size], self._held[size:]
            name = f"{_hash('+'.join(entry.uid for _, entry in some)):x}"
            child = self._child(f"[{name}]", len(self._held), "default")
            key = sum(tup["key"] for tup, _ in some)
            self.collector.emit([child.uid, key], anchors=[tup for tup, _ in some])
            for tup, entry in some:
                entry.children.append(child)
                self._ack(tup, entry)

    def _ack(self, tup: Tuple, entry: Entry) -> None:
        entry.status = "acked"
        self.collector.ack(tup)

    def _emit(self, tup: Tuple, entry: Entry) -> None:
        habits = self._habits
        for number in range(int(habits.draw(tup, "children") * (habits.children + 1))):
            stream = ("default", "loose")[_hash(f"{number}{tup['uid']}") % 2]
            child = self._child(tup["uid"], number, stream)
            self.collector.emit([child.uid, tup["key"] + number], anchors=tup, stream=stream)
            entry.children.append(child)
        for receiver in habits.direct:
            child = self._child(tup["uid"], f"d-{receiver}", "direct", receiver)
            tasks = self.context.component_tasks(receiver)
            task = tasks[_hash(child.uid) % len(tasks)]
            self.collector.emit_direct(task, [child.uid, tup["key"]], anchors=tup, stream="direct")
            entry.children.append(child)
        if habits.draw(tup, "loose") < habits.loose:
            free = self._child(tup["uid"], "free", "default")
            self.collector.emit([free.uid, tup["key"]])

    def _child(self, parent: str, number: object, stream: str, to: str | None = None) -> Child:
        odd = f"~{self._diary.tick()}" if self._habits.erratic else ""
        return Child(stream, f"{parent}>{self.context.task}.{number}{odd}", to)


@final
class DrawnBolt(_Drawn):
    """A bolt without state."""


@final
class DrawnCounter(_Drawn, StatefulBolt):
    """Counts by task and key. A raise takes its count back."""

    def count(self, tup: Tuple, entry: Entry) -> None:
        """Count the key."""
        key = (self.context.task, tup["key"])
        self.state.add(key)
        entry.counted = key


@final
class DrawnBasic(BasicBolt):
    """Emits, and perhaps raises."""

    outputs = _OUTPUTS

    def __init__(self, habits: Habits, diary: Diary) -> None:
        self._habits = habits
        self._diary = diary

    def execute(self, tup: Tuple, collector: BasicCollector) -> None:
        """Emit or raise."""
        habits, context = self._habits, self.context
        entry = self._diary.note(context.component, context.task, tup["uid"])
        for number in range(int(habits.draw(tup, "children") * (habits.children + 1))):
            uid = f"{tup['uid']}>{context.task}.{number}"
            collector.emit([uid, tup["key"] + number])
            entry.children.append(Child("default", uid))
        if habits.draw(tup, "raises") < habits.raises:
            entry.status = "raised"
            raise RuntimeError("drawn")
        entry.status = "acked"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomTopology:
    """A topology, its settings and its diary.

    Attributes:
        topology: the topology.
        config: the settings.
        diary: the bolts' diary.
        partitions: how many partitions to run with.
        reproducible: whether all bolts are deterministic.
        messages: how many messages each spout gives out.
    """

    topology: Topology
    config: Config
    diary: Diary
    partitions: int
    reproducible: bool
    messages: Mapping[str, int]


def random_topology(seed: int) -> RandomTopology:
    """Draw a topology: spouts of both kinds, one to four levels of bolts, every grouping."""
    random = Random(seed)
    diary = Diary()
    builder = TopologyBuilder()
    messages: dict[str, int] = {}
    for number in range(random.choice((1, 1, 2))):
        name = f"spout{number}"
        messages[name] = random.randint(1, 12)
        rows = [[f"{name}:{n}", n % 5] for n in range(messages[name])]
        kind = random.choice((RequeueSpout, LogSpout))
        builder.set_spout(name, kind(rows, _FIELDS), random.choice((1, 1, 2)))
    levels = [
        [f"bolt{level}{n}" for n in range(random.choice((1, 1, 2)))]
        for level in range(random.randint(1, 4))
    ]
    erratic = random.random() < 0.2
    direct = _draw_direct(random, levels)
    sources = list(messages)
    for level in levels:
        for name in level:
            habits = _draw_habits(random, direct.get(name, ()), erratic=erratic)
            declarer = builder.set_bolt(
                name, _draw_bolt(random, habits, diary), random.choice((1, 2, 3))
            )
            _subscribe(random, declarer, name, sources, direct)
        sources += level
    return RandomTopology(
        topology=builder.create_topology(),
        config=_draw_config(random),
        diary=diary,
        partitions=random.choice((1, 2, 2, 3)),
        reproducible=not erratic,
        messages=messages,
    )


def _draw_habits(random: Random, direct: tuple[str, ...], *, erratic: bool) -> Habits:
    seldom = (0.0, 0.0, 0.05, 0.2)
    return Habits(
        seed=random.getrandbits(32),
        fails=random.choice(seldom),
        raises=random.choice(seldom),
        forgets=random.choice(seldom) / 2,
        loose=random.choice(seldom),
        children=random.choice((0, 1, 1, 2)),
        joins=random.choice((0, 0, 2, 3)),
        erratic=erratic and random.random() < 0.5,
        direct=direct,
    )


def _draw_bolt(random: Random, habits: Habits, diary: Diary) -> Bolt | BasicBolt:
    if habits.direct or habits.erratic:
        return DrawnBolt(habits, diary)
    kind = random.choice((DrawnBolt, DrawnCounter, DrawnBasic))
    return kind(habits, diary)


def _draw_direct(random: Random, levels: list[list[str]]) -> dict[str, tuple[str, ...]]:
    """Return the receivers of direct streams: now and then a bolt sends to the next level."""
    found: dict[str, tuple[str, ...]] = {}
    for level, later in pairwise(levels):
        if random.random() < 0.2:
            found[random.choice(level)] = (random.choice(later),)
    return found


def _subscribe(
    random: Random,
    declarer: BoltDeclarer,
    name: str,
    sources: list[str],
    direct: Mapping[str, tuple[str, ...]],
) -> None:
    chosen = random.sample(sources, min(len(sources), random.choice((1, 1, 2))))
    for source in [*chosen, sources[-1]] if sources[-1] not in chosen else chosen:
        streams = ["default"]
        if source.startswith("bolt") and random.random() < 0.5:
            streams.append("loose")
        for stream in streams:
            match random.choice(_GROUPINGS):
                case "fields":
                    declarer.fields_grouping(source, "key", stream)
                case "partial_key":
                    declarer.partial_key_grouping(source, "key", stream)
                case "custom":
                    declarer.custom_grouping(source, Some(), stream)
                case other:
                    getattr(declarer, f"{other}_grouping")(source, stream)
    for source, receivers in direct.items():
        if name in receivers:
            declarer.direct_grouping(source, "direct")


def _draw_config(random: Random) -> Config:
    size = random.choice((2, 4, 100))
    return Config(
        acker_executors=random.choice((None, 1, 2, 3)),
        batch_min_messages=size,
        batch_max_messages=size,
        max_spout_pending=random.choice((None, 3, 5)),
        max_retries=random.choice((0, 1, 3, 16)),
        retry_backoff_secs=random.choice((0.0, 0.1, 5.0)),
        message_timeout_mode=random.choice(("emit", "progress")),
        state_memory_bytes=random.choice((0, 1000, 1 << 30)),
    )


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
