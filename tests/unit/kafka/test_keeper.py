"""Records of failed messages: read once, handed over at the next try, forgotten when done."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm import Split, SpoutConnectionError
from sparkstorm.kafka.assignment import merge_splits
from sparkstorm.kafka.cluster import Partition
from sparkstorm.kafka.driver.keeper import Keeper
from sparkstorm.kafka.records import KeptRecord, kept_records, kept_size, origin_of, to_kept
from sparkstorm.testing import wait_until

LIFE = {"topic": "t", "partition": 3, "topic_id": "id", "epoch": 0}
T3 = Partition("t", 3)


def split_of(start: int, count: int) -> Split:
    return Split(count=count, data={**LIFE, "start": start})


@dataclass
class Line:
    """A record."""

    at: int
    data: bytes | None = b"v"
    millis: int | None = 7
    name: bytes | None = None
    more: Sequence[tuple[str, bytes | None]] = ()

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes | None:
        return self.name

    def value(self) -> bytes | None:
        return self.data

    def timestamp(self) -> tuple[int, int]:
        return (0, -1) if self.millis is None else (1, self.millis)

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return list(self.more)


class Log:
    """A log that is read when the test lets it; offsets from 90 on are gone."""

    def __init__(self, value: bytes = b"v") -> None:
        self.asked: list[tuple[int, ...]] = []
        self.open = threading.Event()
        self.open.set()
        self.away = False
        self._value = value

    def read(self, split: Split) -> Iterator[Line]:
        self.open.wait(10)
        offsets = tuple(split.data["start"] + place for place in split.only or ())
        self.asked.append(offsets)
        if self.away:
            raise SpoutConnectionError("no answer")
        yield from (Line(offset, self._value) for offset in offsets if offset < 90)


def offsets_kept(split: Split) -> list[int]:
    return [record.offset() for record in kept_records(split)[0]]


def test_what_failed_travels_in_the_split_that_is_tried_again() -> None:
    log = Log()
    keeper = Keeper(log.read, 10_000)
    split = split_of(10, 20)
    keeper.want(split, [(2, 4), (7, 8)])
    wait_until(lambda: keeper.counts()[T3] == 3)
    again = keeper.attach(split.narrow([2, 3, 5]))
    assert offsets_kept(again) == [12, 13]
    assert again.narrow([2, 1]).kept == (None, to_kept(Line(13)))
    keeper.want(again, [(0, 2)])
    keeper.forget(again, [(0, 1)])
    assert keeper.counts() == {T3: 2}
    assert offsets_kept(keeper.attach(split.narrow([7]))) == [17]
    keeper.forget(split, [(0, 20)])
    assert not keeper.counts()
    assert log.asked == [(12, 13, 17)], "nothing is read twice"
    keeper.close()


def test_splits_that_are_merged_keep_theirs() -> None:
    one = split_of(10, 5).narrow([4, 0])
    two = split_of(3, 5).narrow([1])
    given_first = [to_kept(Line(14)), None]
    [merged] = merge_splits([replace(one, kept=tuple(given_first)), two])
    assert (merged.data["start"], merged.only) == (3, (1, 7, 11))
    assert merged.kept == (None, None, given_first[0])
    kept, rest = kept_records(merged)
    assert [record.offset() for record in kept] == [14]
    assert rest is not None
    assert (rest.only, rest.count, rest.kept) == ((1, 7), 2, None)


def test_what_is_done_before_it_is_read_is_not_kept() -> None:
    log = Log()
    log.open.clear()
    keeper = Keeper(log.read, 10_000)
    keeper.want(split_of(0, 10), [(0, 5)])
    keeper.forget(split_of(0, 10), [(1, 5)])
    log.open.set()
    wait_until(lambda: keeper.counts()[T3] == 1)
    assert offsets_kept(keeper.attach(split_of(0, 10).narrow(range(10)))) == [0]
    keeper.close()


@pytest.mark.parametrize("away", [False, True])
def test_what_cannot_be_read_is_left_to_the_next_try(away: bool) -> None:
    """It is asked for again if that fails, too."""
    log = Log()
    log.away = away
    keeper = Keeper(log.read, 10_000)
    split = split_of(95, 1)
    keeper.want(split, [(0, 1)])
    wait_until(lambda: bool(log.asked))
    assert keeper.attach(split.narrow([0])).kept is None

    def is_asked_again() -> bool:
        keeper.want(split, [(0, 1)])
        return len(log.asked) > 1

    wait_until(is_asked_again)
    keeper.close()


def test_it_keeps_no_more_than_it_may() -> None:
    """What travels in splits counts, that of an earlier driver too."""
    log = Log(b"v" * 30)
    size = kept_size(to_kept(Line(0, b"v" * 30)))
    keeper = Keeper(log.read, 5 * size)
    split = split_of(0, 50)
    travelling = split.narrow([40])
    keeper.want(replace(travelling, kept=(to_kept(Line(40, b"v" * 30)),)), [(0, 1)])
    keeper.want(split, [(0, 30)])
    wait_until(lambda: keeper.counts()[T3] == 5)
    keeper.want(split, [(5, 30)])
    assert offsets_kept(keeper.attach(split.narrow(range(30)))) == [0, 1, 2, 3]
    keeper.want(split, [(30, 35)])
    keeper.forget(split, [(0, 2)])
    keeper.want(split, [(35, 36)])
    wait_until(lambda: keeper.counts()[T3] == 4)
    assert log.asked[1:] == [(35,)], "when there is no room, nothing is read"
    keeper.close()


some_bytes = st.none() | st.binary(max_size=9)


@given(
    st.integers(0, 1 << 40),
    st.none() | st.integers(0, 1 << 40),
    some_bytes,
    some_bytes,
    st.lists(st.tuples(st.text(max_size=3), some_bytes), max_size=3),
)
def test_a_kept_record_is_the_record(
    offset: int,
    millis: int | None,
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
) -> None:
    """All of it, also when it is kept once more."""
    made = Line(offset, value, millis, key, headers)
    once = KeptRecord(offset, to_kept(made))
    twice = KeptRecord(offset, to_kept(once))
    for kept in (once, twice):
        assert (kept.key(), kept.value(), kept.headers()) == (key, value, headers)
        assert origin_of(kept) == origin_of(made)
    assert kept_size(to_kept(made)) >= len(key or b"") + len(value or b"")
