"""The partition manager against a naive model that keeps every offset in a set."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sparkstorm.kafka.offsets.acks import decode_acks, encode_acks
from sparkstorm.kafka.offsets.progress import PartitionProgress
from sparkstorm.kafka.offsets.ranges import Range, Ranges
from sparkstorm.kafka.offsets.stored import Stored
from sparkstorm.kafka.offsets.texts import UnfitTextError, from_text, to_text

_OFFSETS = st.integers(0, 60)
_RANGES = st.lists(st.tuples(_OFFSETS, _OFFSETS), max_size=8)


def members(ranges: list[Range]) -> set[int]:
    """Return every offset of the ranges."""
    return {offset for start, stop in ranges for offset in range(start, stop)}


@given(_RANGES, _RANGES, _OFFSETS, _OFFSETS)
def test_ranges_are_a_set(first: list[Range], second: list[Range], low: int, high: int) -> None:
    """Adding, cutting and looking for gaps agree with a plain set."""
    ranges, model = Ranges(first), members(first)
    ranges.add(second)
    model |= members(second)
    assert members(list(ranges)) == model
    assert members(list(ranges.gaps(low, high))) == set(range(low, high)) - model
    assert len(ranges) == len(model)
    ranges.drop_below(low)
    model = {offset for offset in model if offset >= low}
    assert (members(list(ranges)), len(ranges)) == (model, len(model))
    edges = [edge for pair in ranges for edge in pair]
    assert edges == sorted(set(edges)), "ranges touch or overlap"


_SETS = st.one_of(
    st.lists(st.tuples(st.integers(1, 5000), st.integers(1, 5000)), max_size=300),
    st.lists(st.tuples(st.integers(1, 2), st.integers(1, 2)), max_size=2000),
    st.lists(st.tuples(st.integers(1, 2**40), st.integers(1, 2**40)), max_size=20),
    st.tuples(st.integers(1, 50), st.integers(1, 50), st.integers(0, 3000)).map(
        lambda one: [(one[0], one[1])] * one[2]
    ),
)
"""Gaps and runs, one after the other: far apart, dense, huge, regular."""


def ranges_of(base: int, steps: list[Range]) -> list[Range]:
    """Return the ranges that gaps and runs make."""
    done, at = [], base
    for gap, run in steps:
        done.append((at + gap, at + gap + run))
        at += gap + run
    return done


def cut(done: list[Range], most: int) -> list[Range]:
    """Return the first so many offsets of sorted ranges."""
    kept: list[Range] = []
    for start, stop in done:
        if most <= 0:
            break
        kept.append((start, min(stop, start + most)))
        most -= stop - start
    return kept


@given(st.integers(0, 2**40), _SETS, st.integers(0, 600), st.booleans())
def test_acks_that_are_stored_are_read_back(
    base: int, steps: list[Range], limit: int, wide: bool
) -> None:
    """The text holds the set, or, if it is too long, its first offsets; never more, none unsaid."""
    done = ranges_of(base, steps)
    text, dropped = encode_acks(base, done, limit, wide=wide)
    total = sum(stop - start for start, stop in done)
    assert len(text) <= limit
    assert wide or text.isascii()
    assert len(text.encode("utf-16-le")) == 2 * len(text), "a character is one UTF-16 unit"
    assert decode_acks(base, text) == cut(done, total - dropped)
    whole, none = encode_acks(base, done, 10**6)
    assert not none
    assert not dropped or len(whole) > limit, "what fits is not cut"


@given(st.integers(0, 2**40), _SETS, st.integers(0, 600), st.text(max_size=9))
def test_a_commit_is_read_back_with_its_text(
    base: int, steps: list[Range], limit: int, run: str
) -> None:
    """Within the room that a broker gives; without room for the frame there is no text."""
    stored = Stored(base, ranges_of(base, steps), run, "topic-1")
    text, dropped = to_text(stored, limit)
    assert len(text) <= limit
    if text:
        again = from_text(base, text, "topic-1")
        kept = sum(stop - start for start, stop in stored.done) - dropped
        assert (again.offset, again.run, again.topic_id) == (base, run, "topic-1")
        assert list(again.done) == cut(list(stored.done), kept)
        for offset, topic_id in ((base + 1, "topic-1"), (base, "topic-2")):
            with pytest.raises(UnfitTextError):
                from_text(offset, text, topic_id)
    elif stored.done:
        assert dropped


_TEXTS = st.one_of(
    st.text(max_size=60),
    st.integers(1, 4000).map(lambda count: "[" * count),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=5,
    ).map(json.dumps),
    st.fixed_dictionaries(
        {},
        optional={
            "sparkstorm": st.sampled_from([1, 2, 2, 2, 3, "2", None]),
            "run": st.text(max_size=3) | st.none(),
            "topic": st.sampled_from(["t", "t", 7]),
            "base": st.sampled_from([5, 5, 5, "5", None, 2**70]),
            "acks": st.text(max_size=9) | st.integers() | st.none() | st.lists(st.none()),
        },
    ).map(json.dumps),
)


@given(_TEXTS)
def test_any_text_is_progress_or_unfit(text: str) -> None:
    """Later versions, other programs, nonsense: no other error, whatever stands there."""
    try:
        stored = from_text(5, text, "t")
    except UnfitTextError:
        return
    assert stored.offset == 5
    assert all(start <= stop for start, stop in stored.done)


@given(st.binary(max_size=40), st.sampled_from("rRbBx"), st.text(max_size=20))
def test_acks_that_others_stored_are_refused_or_read(data: bytes, kind: str, text: str) -> None:
    """Any text gives ranges or a ValueError, and nothing else."""
    wide = "".join(chr(0x3400 + byte) for byte in data)
    for given_text in (kind + base64.b64encode(data).decode(), kind + wide, text):
        try:
            ranges = decode_acks(5, given_text)
        except ValueError:
            continue
        assert all(5 <= start <= stop for start, stop in ranges)


class PartitionMachine(RuleBasedStateMachine):
    """Random acks, failures, gaps, dead letters, jumps, restarts and rebalances."""

    def __init__(self) -> None:
        super().__init__()
        self.progress = PartitionProgress(0)
        self.end = 0
        self.planned: set[int] = set()
        self.done: set[int] = set()
        self.failed: set[int] = set()
        self.committed = (0, "")

    @property
    def pending(self) -> list[int]:
        """What a verdict may come for."""
        return sorted(self.planned - self.done)

    @rule(count=st.integers(1, 30))
    def produce(self, count: int) -> None:
        """The log grows."""
        self.end += count

    @rule(limit=st.integers(1, 20), cap=st.none() | st.integers(1, 40))
    def emit(self, limit: int, cap: int | None) -> None:
        """Only what was never planned nor done is planned, in order, without holes."""
        before, point = self.progress.emitted_to, self.naive_point
        taken = members(self.progress.emit(limit, self.end, cap))
        assert not taken & (self.planned | self.done)
        assert len(taken) <= limit
        top = self.end if cap is None else min(self.end, point + cap)
        wanted = [o for o in range(before, top) if o not in self.done][:limit]
        assert sorted(taken) == wanted
        self.planned |= taken

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        """Some are acked, empty, or given up."""
        some = data.draw(st.lists(st.sampled_from(self.pending), min_size=1))
        self.progress.finish([(offset, offset + 1) for offset in some])
        self.done |= set(some)
        self.failed -= set(some)

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        """Some fail, and stay owed."""
        some = data.draw(st.lists(st.sampled_from(self.pending), min_size=1))
        self.progress.fail([(o, o + 1) for o in some], "bolt", "why", seen=True)
        self.failed |= set(some)

    @rule(ahead=st.integers(0, 10))
    def jump(self, ahead: int) -> None:
        """The log's start has passed what was not planned yet."""
        target = min(self.progress.emitted_to + ahead, self.end)
        lost = set(range(self.progress.emitted_to, target)) - self.done
        assert self.progress.jump(target) == len(lost)
        self.planned |= lost
        self.done |= lost

    @rule(limit=st.sampled_from([0, 6, 4095]))
    def commit(self, limit: int) -> None:
        """What is stored never says more than what is done."""
        point = self.progress.commit_to
        text, _ = encode_acks(point, self.progress.done_beyond, limit)
        self.committed = (point, text)
        assert members(decode_acks(point, text)) <= self.done

    @rule()
    def rebalance(self) -> None:
        """Another task takes over from what was committed: nothing that is owed is forgotten."""
        point, text = self.committed
        known = decode_acks(point, text)
        self.progress = PartitionProgress(point, known)
        self.planned = set(range(point)) | {
            o for o in members(known) if o < self.progress.emitted_to
        }
        self.done = set(range(point)) | members(known)
        self.failed = set()

    @rule()
    def restart(self) -> None:
        """The same task goes on from its checkpoint; what is owed is still owed by the engine."""
        self.progress = PartitionProgress.restore(self.progress.snapshot())
        self.failed = set()

    @property
    def naive_point(self) -> int:
        """The first offset that is not done."""
        return next(offset for offset in range(self.end + 10_000) if offset not in self.done)

    @invariant()
    def agrees(self) -> None:
        """The commit point, the counts and the oldest offset are those of the model."""
        progress, point = self.progress, self.naive_point
        assert progress.commit_to == point
        assert members(list(progress.done_beyond)) == {o for o in self.done if o > point}
        assert progress.pending == len(self.planned - self.done)
        assert progress.oldest == (min(self.planned - self.done, default=None))
        assert progress.failed == len(self.failed)


TestPartition = PartitionMachine.TestCase
