"""The ack core against a naive model that keeps every tree as the tuples it is made of.

A :class:`World` plays a random topology: spout tasks emit roots, bolt tasks (in the order of their
numbers, so that there is no cycle) ack, fail or hold what they receive and emit more, ackers tally,
the ledger judges. Beside every step it tells the :class:`Model` what happened, by the tuples' names
alone. After each batch the ledger's verdicts must be the model's.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import TypeAlias

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.acking.anchors import NO_PARENT, Anchors, parent_of_list
from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.groves import Groves, Pieces
from sparkstorm.acking.ids import make_root, seeds
from sparkstorm.acking.ledger import Ledger, Verdicts
from sparkstorm.acking.lineage import Lineage
from sparkstorm.acking.shares import Entries, Settlement, settle
from sparkstorm.acking.tally import RootRange, Tally
from sparkstorm.verdicts import Failure, Reason

FAILED = Failure(reason=Reason.FAILED, message="the bolt called fail")

Name: TypeAlias = int
"""Names a tuple in the model; the tuple that a root itself stands for is named by the root."""

Delivery: TypeAlias = int
"""Names one delivery of a tuple."""


# --- the model ---------------------------------------------------------------------------------


@dataclass
class Tree:
    """All tuples of a root, and how often each was acked."""

    emitted: set[Name]
    acked: Counter[Name] = field(default_factory=Counter)
    failed: bool = False

    @property
    def complete(self) -> bool:
        """Whether every tuple was acked, and none twice."""
        return not self.failed and all(self.acked[name] == 1 for name in self.emitted)


@dataclass
class Model:
    """Every tree that has not ended; and what every delivery caused, and whether it was acked.

    ``children`` has the tuples that were emitted anchored to a delivery.
    """

    trees: dict[int, Tree] = field(default_factory=dict)
    children: dict[Delivery, set[Name]] = field(default_factory=lambda: defaultdict(set))
    done: dict[Name, set[Delivery]] = field(default_factory=lambda: defaultdict(set))

    def emit(self, name: Name, roots: Iterable[int], parents: Iterable[Delivery]) -> None:
        for root in self._known(roots):
            self.trees[root].emitted.add(name)
        for parent in parents:
            self.children[parent].add(name)

    def ack(self, name: Name, delivery: Delivery, roots: Iterable[int]) -> None:
        self.done[name].add(delivery)
        for root in self._known(roots):
            self.trees[root].acked[name] += 1

    def is_processed(self, root: int, name: Name) -> bool:
        """Whether a delivery of the tuple was acked, and all that it caused was processed too."""
        emitted = self.trees[root].emitted
        return any(
            all(self.is_processed(root, child) for child in self.children[delivery] & emitted)
            for delivery in self.done[name]
        )

    def fail(self, roots: Iterable[int]) -> None:
        for root in self._known(roots):
            self.trees[root].failed = True

    def end_batch(
        self, began: set[int], held: set[int], unsure: set[int]
    ) -> dict[int, Reason | None]:
        """What ended by this batch: None for acked, else the reason; nothing of the unsure ones."""
        ended: dict[int, Reason | None] = {}
        for root in set(self.trees) - unsure:
            tree = self.trees[root]
            if tree.failed:
                ended[root] = Reason.FAILED
            elif tree.complete:
                ended[root] = None
            elif root in began and root not in held:
                ended[root] = Reason.LOST
        for root in ended:
            del self.trees[root]
        return ended

    def _known(self, roots: Iterable[int]) -> list[int]:
        return [root for root in roots if root in self.trees]


# --- the world ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Copy:
    """A tuple as one task receives it, with the groves that it names."""

    name: Name
    delivery: Delivery
    roots: frozenset[int]
    lineage: Lineage
    groves: Pieces | None = None


@dataclass(frozen=True)
class Shape:
    """How large a world is, how many roots make a grove, and what goes wrong."""

    spouts: int
    bolts: int
    ackers: int
    batches: int
    roots: int
    many: int
    loses: bool = False
    doubles: bool = False


class World:
    """A topology that runs by chance, with the real ack core."""

    def __init__(self, shape: Shape, random: Random) -> None:
        self.shape = shape
        self.random = random
        self.model = Model()
        self.ledger = Ledger(None, 0.0)
        self.waiting: dict[int, list[Copy]] = {bolt: [] for bolt in range(shape.bolts)}
        self.ended: set[int] = set()
        self._doubled: set[int] = set()
        self._sequences = [0] * shape.spouts
        self._names = count(1 << 100)  # beyond all roots
        self._tallies: list[Tally] = []

    def run_batch(self) -> None:
        """Play a batch, and compare the verdicts with the model's."""
        ranges = self._plan()
        self.ledger.begin(ranges)
        self._tallies = [Tally(ranges, a, self.shape.ackers) for a in range(self.shape.ackers)]
        for span in ranges:
            self._read(span)
        held: set[int] = set()
        for bolt in range(self.shape.bolts):
            held |= self._run_bolt(bolt)
        results = [tally.result() for tally in self._tallies]
        self.random.shuffle(results)
        verdicts = self.ledger.settle(ranges, results, 0.0)
        began = {root for span in ranges for root in range(span.first, span.first + span.count)}
        self._compare(reasons(verdicts), self.model.end_batch(began, held, self._doubled))

    def _plan(self) -> list[RootRange]:
        """Some roots for each spout task, in one load or two."""
        ranges = []
        for spout in range(self.shape.spouts):
            for _ in range(self.random.choice((1, 1, 2))):
                first = make_root(spout + 1, self._sequences[spout])
                roots = self.random.randint(0, self.shape.roots)
                self._sequences[spout] += roots
                ranges += [RootRange(first, roots)] * bool(roots)
        for span in ranges:
            for root in range(span.first, span.first + span.count):
                self.model.trees[root] = Tree(emitted={root})
        return ranges

    def _read(self, span: RootRange) -> None:
        """The read stage: routing is the processing of the root tuple."""
        there = [r for r in range(span.first, span.first + span.count) if not self._loses()]
        twice = frozenset(root for root in there if self._doubles({root}))
        roots = np.array(there, np.uint64)
        copies = [Copy(r, next(self._names), frozenset({r}), Lineage.untracked(1)) for r in there]
        emits = [([index], self._targets(-1)) for index in range(len(there))]
        acked = np.ones(len(there), np.bool_)
        self._settle(Lineage(roots, seeds(roots)), copies, acked, emits, twice)

    def _run_bolt(self, bolt: int) -> set[int]:
        """Execute all that waits for a bolt task; returns the roots of what it goes on holding."""
        inputs, self.waiting[bolt] = self.waiting[bolt], []
        self.random.shuffle(inputs)
        fates = [self.random.choice(("ack",) * 7 + ("hold", "hold", "fail")) for _ in inputs]
        acked = np.array([fate == "ack" for fate in fates], np.bool_)
        lists = [self._anchors(len(inputs)) for _ in range(len(inputs))]
        emits = [(self.random.choice(lists), self._targets(bolt)) for _ in range(len(inputs))]
        self._settle(self._concat(inputs), inputs, acked, emits)
        for copy, fate in zip(inputs, fates, strict=True):
            if fate == "fail":
                self._fail(copy)
        held = [copy for copy, fate in zip(inputs, fates, strict=True) if fate == "hold"]
        self.waiting[bolt] += held
        return self._hold(held)

    def _settle(
        self,
        lineage: Lineage,
        inputs: Sequence[Copy],
        acked: np.ndarray,
        emits: Sequence[tuple[list[int], list[int]]],
        twice: frozenset[int] = frozenset(),
    ) -> None:
        """Settle with the ack core, tell the model, deliver the children, tell the ackers.

        What is emitted for the roots ``twice`` is delivered twice.
        """
        sent = [(anchors, target) for anchors, targets in emits for target in targets]
        groves = groves_of(inputs)
        anchored = Anchors.resolve(lineage, [one for one, _ in sent], groves, self.shape.many)
        pairs = anchored.of(np.array([parent(n, one) for n, (one, _) in enumerate(sent)], np.int64))
        lineage = anchored.inputs
        acked = np.concatenate([acked, np.zeros(len(lineage) - len(acked), np.bool_)])
        token = next(self._names) & 0xFFFFFFFF
        settlement = settle(lineage, acked, *pairs, len(sent), token)
        assert_same(settlement, settle(lineage, acked, *pairs, len(sent), token))
        assert_conserved(lineage, acked, settlement, groves)
        for copy in (copy for copy, done in zip(inputs, acked, strict=False) if done):
            self.model.ack(copy.name, copy.delivery, copy.roots)
        for number, (anchors, target) in enumerate(sent):
            roots = frozenset(root for one in anchors for root in inputs[one].roots)
            name, mine = next(self._names), settlement.children.slice(number, number + 1)
            self.model.emit(name, roots, [inputs[one].delivery for one in anchors])
            assert groves.roots_of(mine.roots).tolist() == sorted(roots)
            named = groves.pieces_of(mine.roots)
            if not self._loses():
                times = 2 if roots & twice or self._doubles(roots) else 1
                for _ in range(times):
                    copy = Copy(name, next(self._names), roots, mine, named)
                    self.waiting[target].append(copy)
        self._tally(groves.expand(settlement.entries))

    def _tally(self, entries: Entries) -> None:
        """Hand entries to the ackers, in any order and any pieces."""
        order = list(range(len(entries)))
        self.random.shuffle(order)
        while order:
            size = self.random.randint(1, len(order))
            piece, order = np.array(order[:size]), order[size:]
            roots, deltas = entries.roots[piece], entries.deltas[piece]
            for acker, tally in enumerate(self._tallies):
                mine = roots % np.uint64(self.shape.ackers) == acker
                tally.add(Entries(roots[mine], deltas[mine]))

    def _fail(self, copy: Copy) -> None:
        self.model.fail(copy.roots)
        for root in copy.roots:
            self._tallies[root % self.shape.ackers].fail(FailedRoots.of({root: FAILED}))

    def _hold(self, copies: Sequence[Copy]) -> set[int]:
        held = {root for copy in copies for root in copy.roots}
        for acker, tally in enumerate(self._tallies):
            mine = [root for root in held if root % self.shape.ackers == acker]
            tally.hold(np.array(mine, np.uint64))
        return held

    def _anchors(self, inputs: int) -> list[int]:
        """None, one, several, many; also the same one twice."""
        count = self.random.choice((0, 1, 1, 1, 2, 3, 8))
        return [self.random.randrange(inputs) for _ in range(count)]

    def _targets(self, bolt: int) -> list[int]:
        """The tasks that get a copy: none (no subscriber), one, or all (all grouping)."""
        later = list(range(bolt + 1, self.shape.bolts))
        kind = self.random.choice(("none", "one", "one", "two", "all"))
        if kind == "all":
            return later
        copies = {"none": 0, "one": 1, "two": 2}[kind]
        return [self.random.choice(later) for _ in range(copies)] if later else []

    def _concat(self, copies: Sequence[Copy]) -> Lineage:
        """The lineage of the inputs, put together from packets of any size."""
        parts, rest = [], [copy.lineage for copy in copies]
        while rest:
            size = self.random.randint(1, len(rest))
            parts.append(Lineage.concat(rest[:size]))
            rest = rest[size:]
        return Lineage.concat(parts)

    def _loses(self) -> bool:
        return self.shape.loses and self.random.random() < 0.05

    def _doubles(self, roots: AbstractSet[int]) -> bool:
        """Whether a tuple is delivered twice; this happens to a tree once at most."""
        if not self.shape.doubles or roots & self._doubled or self.random.random() > 0.05:
            return False
        self._doubled |= roots
        return True

    def _compare(
        self, verdicts: dict[int, Reason | None], expected: dict[int, Reason | None]
    ) -> None:
        assert not set(verdicts) & self.ended, "a root ended twice"
        self.ended |= set(verdicts)
        for root in set(verdicts) & self._doubled:
            # How often its tuples were processed is chance; that they were is not.
            assert verdicts[root] is not None or self.model.is_processed(root, root)
            expected[root] = verdicts[root]
            self.model.trees.pop(root)
        assert verdicts == expected
        assert self.ledger.open_roots().tolist() == sorted(self.model.trees)
        assert self.ledger.pending == self.ledger.open == len(self.model.trees)


def reasons(verdicts: Verdicts) -> dict[int, Reason | None]:
    """The verdicts as the model gives them."""
    acked = dict.fromkeys(verdicts.acked.tolist())
    failed = {root: failure.reason for root, failure in verdicts.failed.items()}
    assert not set(acked) & set(failed), "a root was acked and failed"
    return {**acked, **failed}


def assert_same(one: Settlement, other: Settlement) -> None:
    """A stage that runs twice sends the same bytes."""
    assert one.children.roots.tobytes() == other.children.roots.tobytes()
    assert one.children.shares.tobytes() == other.children.shares.tobytes()
    assert one.entries.roots.tobytes() == other.entries.roots.tobytes()
    assert one.entries.deltas.tobytes() == other.entries.deltas.tobytes()


def groves_of(copies: Iterable[Copy]) -> Groves:
    """What a task knows of groves that got these tuples, each with its own."""
    groves = Groves()
    for copy in copies:
        if copy.groves is not None:
            groves.learn(copy.delivery, copy.groves)
    return groves


def parent(number: int, anchors: Sequence[int]) -> int:
    """The parent of a tuple with these anchors, which are the list of this number."""
    if len(anchors) > 1:
        return parent_of_list(number)
    return anchors[0] if anchors else NO_PARENT


def assert_conserved(
    lineage: Lineage, acked: np.ndarray, settlement: Settlement, groves: Groves
) -> None:
    """What a task acked of a root is what its children and entries hold of it: nothing is lost."""
    sums: Counter[int] = Counter()
    pairs = np.repeat(acked, lineage.counts())
    for roots, values in (
        (lineage.roots[pairs], lineage.shares[pairs]),
        (settlement.children.roots, settlement.children.shares),
        (settlement.entries.roots, settlement.entries.deltas),
    ):
        each = groves.expand(Entries(roots, values))
        for root, value in zip(each.roots.tolist(), each.deltas.tolist(), strict=True):
            sums[root] ^= value
    assert not any(sums.values())


shapes = st.builds(
    Shape,
    spouts=st.integers(1, 3),
    bolts=st.integers(0, 5),
    ackers=st.integers(1, 4),
    batches=st.integers(1, 4),
    roots=st.integers(1, 6),
    many=st.integers(1, 5),
)


# --- the tests ---------------------------------------------------------------------------------


@given(shape=shapes, seed=st.integers(0, 1 << 32))
def test_the_ledger_judges_as_the_model_does(shape: Shape, seed: int) -> None:
    """A root is acked in the very batch in which the model finds all its tuples acked."""
    world = World(shape, Random(seed))
    for _ in range(shape.batches):
        world.run_batch()


@given(shape=shapes, seed=st.integers(0, 1 << 32))
def test_a_lost_tuple_never_looks_processed(shape: Shape, seed: int) -> None:
    """A root of which any copy was dropped is never acked, be its parent acked, held or failed."""
    world = World(Shape(**{**vars(shape), "loses": True}), Random(seed))
    for _ in range(shape.batches):
        world.run_batch()


@given(shape=shapes, seed=st.integers(0, 1 << 32))
def test_what_comes_twice_hides_nothing(shape: Shape, seed: int) -> None:
    """A root of which a tuple was delivered twice is acked only if one delivery was processed."""
    world = World(Shape(**{**vars(shape), "doubles": True}), Random(seed))
    for _ in range(shape.batches):
        world.run_batch()
