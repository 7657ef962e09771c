"""The partition manager against a naive model that keeps every offset in a set."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sparkstorm.kafka.ack_map import decode_acks, encode_acks
from sparkstorm.kafka.progress import PartitionProgress
from sparkstorm.kafka.ranges import Range, Ranges

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


@given(
    st.integers(0, 2**40),
    st.lists(st.tuples(st.integers(1, 5000), st.integers(1, 5000)), max_size=300),
    st.integers(0, 600),
)
def test_what_is_stored_is_read_back(base: int, steps: list[Range], limit: int) -> None:
    """The text holds the set, or, if it is too long, the set up to an offset; never more."""
    done, at = [], base
    for gap, run in steps:
        done.append((at + gap, at + gap + run))
        at += gap + run
    text, kept_to = encode_acks(base, done, limit)
    assert len(text) <= limit
    assert decode_acks(base, text) == [pair for pair in done if pair[1] <= kept_to]
    whole, _ = encode_acks(base, done, 10**6)
    if len(whole) <= limit:
        assert decode_acks(base, text) == done


@given(st.binary(max_size=40), st.sampled_from("rRbBx"), st.text(max_size=20))
def test_what_others_stored_is_refused_or_read(data: bytes, kind: str, text: str) -> None:
    """Any text gives ranges or a ValueError, and nothing else."""
    import base64

    for given_text in (kind + base64.b64encode(data).decode(), text):
        try:
            ranges = decode_acks(5, given_text)
        except ValueError:
            continue
        assert all(start <= stop for start, stop in ranges)


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
