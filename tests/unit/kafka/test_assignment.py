"""The partitions of a task: what is planned of which, and what is to be committed."""

import logging
from typing import Any

import pytest

from sparkstorm import Failure, Reason, Split
from sparkstorm.kafka.assignment import Assignment, Beginning, Limits, merge_splits
from sparkstorm.kafka.cluster import Partition
from sparkstorm.kafka.stores import Stored

A, B = Partition("a", 0), Partition("b", 1)
ERROR = Failure(reason=Reason.ERROR, component="bolt", message="no such customer")
LOST = Failure(reason=Reason.LOST)


def assignment(*ends: tuple[Partition, int], bounded: bool = False, **limits: Any) -> Assignment:
    made = Assignment(Limits(**limits), bounded=bounded)
    for partition, _ in ends:
        made.begin(partition, Beginning("id", 0))
    made.note_ends(dict(ends))
    return made


def planned(splits: list[Split]) -> list[tuple[str, int, int]]:
    return [(s.data["topic"], s.data["start"], s.data["start"] + s.count) for s in splits]


def test_all_partitions_have_their_turn() -> None:
    """A long partition does not keep a short one waiting."""
    made = assignment((A, 100_000), (B, 10))
    first, second = made.plan(1000, 0.0), made.plan(1000, 0.0)
    assert {s.data["topic"] for s in first + second} == {"a", "b"}
    assert sum(s.count for s in made.plan(5000, 0.0)) == 5000
    assert ("b", 0, 10) in planned(first + second)


def test_a_failed_message_does_not_hold_back_later_ones() -> None:
    """Defect 1: what fails is tried again by its engine; the plan goes on behind it."""
    made = assignment((A, 30))
    [split] = made.plan(10, 0.0)
    made.fail(split, [(0, 1)], ERROR)
    made.finish(split, [(1, 10)])
    assert planned(made.plan(10, 0.0)) == [("a", 10, 20)]
    assert made.commits() == {A: Stored(0, [(1, 10)])}
    [told] = made.statistics()
    assert (told.oldest, told.held_by, told.held_why) == (0, "bolt", "no such customer")
    assert (told.acked_beyond, told.in_retry, told.in_flight, told.lag) == (9, 1, 10, 30)


def test_what_is_given_up_is_committed_across() -> None:
    """Defect 2: a message that always fails holds the commit only until it is a dead letter."""
    made = assignment((A, 10))
    [split] = made.plan(10, 0.0)
    made.finish(split, [(1, 10)])
    made.fail(split, [(0, 1)], ERROR)
    made.finish(split, [(0, 1)], given_up=True)
    assert made.commits() == {A: Stored(10, [])}
    assert made.commits() == {}, "only what changed"
    assert made.statistics()[0].dead_letters == 1


def test_too_much_uncommitted_pauses_the_partition(caplog: pytest.LogCaptureFixture) -> None:
    """Defect 3: nothing is passed over for being far behind; reading waits, and says so once."""
    made = assignment((A, 100), (B, 100), uncommitted=20)
    splits = made.plan(1000, 0.0)
    assert sum(split.count for split in splits) == 40
    of_a = next(split for split in splits if split.data["topic"] == "a")
    made.finish(of_a, [(1, 20)])
    with caplog.at_level(logging.WARNING):
        assert made.plan(1000, 0.0) == made.plan(1000, 0.0) == []
    assert [m for m in caplog.messages if m.startswith("a/0 is paused: 20 offsets beyond its")]
    assert len(caplog.messages) == 2
    assert [one.paused for one in made.statistics()] == [True, True]
    made.finish(of_a, [(0, 1)])
    assert planned(made.plan(1000, 0.0)) == [("a", 20, 40)]
    assert [one.paused for one in made.statistics()] == [False, True]


def test_a_lost_or_unread_message_is_merely_pending() -> None:
    """It did not fail by itself."""
    made = assignment((A, 10))
    [split] = made.plan(10, 0.0)
    made.fail(split, [(0, 10)], LOST)
    made.fail(split, [(0, 10)], Failure(reason=Reason.ERROR, counted=False))
    [told] = made.statistics()
    assert (told.in_flight, told.in_retry, told.retries) == (10, 0, 0)


@pytest.mark.sweep
def test_any_number_of_failures_is_no_reason_to_stop() -> None:
    """Defect 5: there is no rule of "too many tuple failures"."""
    made = assignment((A, 100_000))
    [split] = made.plan(50_000, 0.0)
    for _ in range(3):
        made.fail(split, [(0, 50_000)], ERROR)
    assert made.plan(10, 0.0)
    assert made.statistics()[0].in_retry == 50_000


def test_the_rate_of_a_partition() -> None:
    """So many a second; a pause makes up for one second at the most."""
    made = assignment((A, 10_000), rate=100.0)
    assert sum(s.count for s in made.plan(1000, 0.0)) == 100
    assert made.plan(1000, 0.0) == []
    assert sum(s.count for s in made.plan(1000, 0.5)) == 50
    assert sum(s.count for s in made.plan(1000, 60.0)) == 100


def test_a_bounded_one_ends_where_its_partitions_ended() -> None:
    """What comes later is left to the next run."""
    made = assignment((A, 10), (B, 0), bounded=True)
    assert not made.exhausted
    made.note_ends({A: 50, B: 7})
    assert planned(made.plan(100, 0.0)) == [("a", 0, 10)]
    assert made.exhausted
    assert not assignment((A, 0)).exhausted


def test_a_new_topic_of_the_name_is_begun_anew(caplog: pytest.LogCaptureFixture) -> None:
    """Verdicts of the old one are not counted for the new one's offsets."""
    made = assignment((A, 10))
    [old] = made.plan(10, 0.0)
    made.begin(A, Beginning("other", 0, why="it was deleted and made anew"))
    made.note_ends({A: 10})
    made.finish(old, [(0, 10)])
    assert made.commits() == {A: Stored(0, [])}
    [new] = made.plan(10, 0.0)
    assert new.data["topic_id"] == "other"
    made.finish(new, [(0, 10)])
    assert made.commits() == {A: Stored(10, [])}
    assert caplog.messages == ["a/0: it was deleted and made anew"]


def test_what_the_log_no_longer_has_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Defect 6: going on elsewhere is never silent."""
    made = assignment((A, 100))
    [split] = made.plan(10, 0.0)
    made.jump(A, 60, 60)
    text = "a/0: the log has no offset 10, it begins at 60: going on at 60; 50 offsets are skipped"
    assert caplog.messages == [text]
    made.finish(split, [(0, 10)])
    assert made.commits() == {A: Stored(60, [])}
    assert made.statistics()[0].expired == 50


def test_a_topic_that_is_away_is_not_read(caplog: pytest.LogCaptureFixture) -> None:
    """It may come back, with what was under way."""
    made = assignment((A, 100), (B, 100))
    splits = made.plan(2000, 0.0)
    made.note_ends({A: 200, B: 200})
    made.note_there([A])
    assert [s.data["topic"] for s in made.plan(2000, 0.0)] == ["a"]
    assert caplog.messages == ["b/1 is gone from the cluster: nothing is read from it"]
    made.note_there([A, B])
    for split in splits:
        made.finish(split, [(0, split.count)])
    assert {p: stored.offset for p, stored in made.commits().items()} == {A: 100, B: 100}


def test_a_snapshot_goes_on() -> None:
    """With what is done beyond the commit point, and with what is owed."""
    made = assignment((A, 100))
    [split] = made.plan(50, 0.0)
    made.finish(split, [(10, 20)])
    again = Assignment(Limits())
    again.restore(made.snapshot())
    again.note_ends({A: 100})
    assert again.commits() == {A: Stored(0, [(10, 20)])}
    assert planned(again.plan(50, 0.0)) == [("a", 50, 100)]
    again.finish(split, [(0, 10), (20, 50)])
    assert again.commits() == {A: Stored(50, [])}
    assert again.known == {A: ("id", 100)}


def test_whole_splits_stay_whole_when_retries_are_merged() -> None:
    """They may be long; single records of one life of a partition are read together."""
    life = {"topic": "a", "partition": 0, "topic_id": "id", "epoch": 0}
    whole = Split(count=9, data={**life, "start": 0})
    one = Split(count=1, data={**life, "start": 100}, only=(5,))
    two = Split(count=2, data={**life, "start": 50}, only=(3, 60))
    other = Split(count=1, data={**life, "start": 50, "epoch": 1}, only=(0,))
    merged = merge_splits([one, whole, two, other])
    assert merged[0] is whole
    assert (merged[1].data["start"], merged[1].only) == (50, (3, 55, 60))
    assert merged[2] is other
