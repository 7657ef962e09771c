"""The partitions of a task: what is planned of which, and what is to be committed."""

import json
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from sparkstorm import Failure, Reason, Split
from sparkstorm.kafka.assignment import Assignment, Limits, merge_splits, offsets_of
from sparkstorm.kafka.cluster import Partition
from sparkstorm.kafka.offsets.beginnings import Beginning, Known
from sparkstorm.kafka.offsets.ranges import Range
from sparkstorm.kafka.offsets.stored import CommittedOffset, Stored

A, B = Partition("a", 0), Partition("b", 1)
ERROR = Failure(reason=Reason.ERROR, component="bolt", message="no such customer")
LOST = Failure(reason=Reason.LOST)


def assignment(*ends: tuple[Partition, int], bounded: bool = False, **limits: Any) -> Assignment:
    made = Assignment(Limits(**limits), bounded=bounded)
    for partition, _ in ends:
        made.begin(partition, Beginning("id", 0))
    made.note_ends(dict(ends))
    return made


def restored(made: Assignment) -> Assignment:
    """The same one under the next driver."""
    again = Assignment(Limits())
    again.restore(json.loads(json.dumps(made.snapshot())))
    return again


def stored(offset: int, done: Sequence[Range] = (), topic_id: str = "id") -> Stored:
    return Stored(offset, list(done), topic_id=topic_id)


def planned(splits: list[Split]) -> list[tuple[str, int, int]]:
    ranges = [(s.data["topic"], offsets_of(s, [(0, s.count)])) for s in splits]
    return [(topic, *pair) for topic, found in ranges for pair in found]


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
    assert made.commits() == {A: stored(0, [(1, 10)])}
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
    assert made.commits() == {A: stored(10, [])}
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
    assert made.commits() == {A: stored(0, topic_id="other")}
    [new] = made.plan(10, 0.0)
    assert new.data["topic_id"] == "other"
    made.finish(new, [(0, 10)])
    assert made.commits() == {A: stored(10, topic_id="other")}
    assert caplog.messages == [
        "a/0: it was deleted and made anew. The old topic was planned up to the offset 10, and its "
        "last known end is 10: 0 offsets were not read, nor any that came later"
    ]


def test_unread_offsets_of_a_topic_that_is_made_anew_while_the_driver_is_down_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The checkpoint has the last end that was seen: nobody can ask the old topic for it."""
    made = assignment((A, 100))
    made.plan(10, 0.0)
    again = restored(made)
    again.begin(A, Beginning("other", 0, why="it was made anew"))
    again.note_ends({A: 7})
    assert [(one.expired, one.lag) for one in again.statistics()] == [(90, 7)]
    assert "planned up to the offset 10, and its last known end is 100: 90" in caplog.text


def test_a_log_that_is_cut_while_the_driver_is_down_is_counted() -> None:
    """Its end falls behind the one that the checkpoint has."""
    made = assignment((A, 100))
    made.plan(10, 0.0)
    again = restored(made)
    again.note_ends({A: 30})
    assert [(one.expired, one.log_cuts) for one in again.statistics()] == [(70, 1)]


def test_a_log_that_is_cut_and_reset_while_the_driver_is_down_is_counted() -> None:
    """A reset is no reason to forget the end that was known."""
    made = assignment((A, 100))
    made.plan(10, 0.0)
    again = restored(made)
    again.begin(A, Beginning("id", 4, why="it was reset"))
    again.note_ends({A: 30})
    assert [(one.expired, one.log_cuts) for one in again.statistics()] == [(70, 1)]


def test_unread_offsets_are_not_gone_when_the_group_was_reset() -> None:
    """The log is the same one: they are read as ever."""
    made = assignment((A, 100))
    made.plan(10, 0.0)
    again = restored(made)
    again.begin(A, Beginning("id", 4, why="it was reset"))
    again.note_ends({A: 100})
    assert [one.expired for one in again.statistics()] == [0]
    assert planned(again.plan(1000, 0.0)) == [("a", 4, 100)]


def test_what_the_log_no_longer_has_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Defect 6: going on elsewhere is never silent."""
    made = assignment((A, 100))
    [split] = made.plan(10, 0.0)
    made.jump(A, 60, 60)
    text = "a/0: the log has no offset 10, it begins at 60: going on at 60; 50 offsets are skipped"
    assert caplog.messages == [text]
    made.finish(split, [(0, 10)])
    assert made.commits() == {A: stored(60, [])}
    assert made.statistics()[0].expired == 50


def test_a_log_that_is_cut_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Where it ended, where it goes on, and what nobody had read: in the log and the statistics."""
    made = assignment((A, 100))
    [split] = made.plan(60, 0.0)
    made.note_ends({A: 20})
    assert not caplog.messages, "where to go on follows"
    made.begin(A, Beginning("id", 5, why="the log has no offset 60: going on at 5", cut=True))
    made.note_ends({A: 20})
    made.finish(split, [(0, 60)])
    [told] = made.statistics()
    assert (told.expired, told.log_cuts, told.committed, told.lag) == (40, 1, 5, 15)
    assert caplog.messages == [
        "a/0: the log has no offset 60: going on at 5; 40 offsets before its old end 100 were not "
        "read"
    ]


def test_a_log_that_was_cut_and_has_grown_again_keeps_what_lies_before_the_cut() -> None:
    """What was done there stays done, what was not comes again; late verdicts count for nothing."""
    made = assignment((A, 100))
    [split] = made.plan(60, 0.0)
    made.finish(split, [(0, 10), (12, 50)])
    made.begin(A, Beginning("id", 40, cut=True, regrown=True))
    made.note_ends({A: 120})
    made.finish(split, [(10, 12), (50, 60)])
    assert made.commits() == {A: stored(10, [(12, 40)])}
    assert planned(made.plan(1000, 0.0)) == [("a", 10, 12), ("a", 40, 120)]


def test_a_log_that_is_cut_behind_what_is_planned_is_counted_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A bounded spout does not wait for offsets that are gone."""
    made = assignment((A, 100), bounded=True)
    made.plan(10, 0.0)
    made.note_ends({A: 30})
    [told] = made.statistics()
    assert (told.expired, told.log_cuts, told.lag) == (70, 1, 30)
    assert "it ended at 100 and ends at 30 now: 70 offsets were gone" in caplog.text
    assert planned(made.plan(1000, 0.0)) == [("a", 10, 30)]
    assert made.exhausted


def test_a_quiet_partition_is_stored_with_all_others() -> None:
    """Its offset would expire at the broker."""
    made = assignment((A, 10), (B, 10))
    assert len(made.commits()) == 2
    assert made.commits() == {}
    assert set(made.commits(everything=True)) == {A, B}


def test_the_age_of_a_lag() -> None:
    """For how long the first message that is not done has been there, as far as was seen."""
    made = assignment((A, 0))
    made.note_ends({A: 10}, 100.0)
    made.note_ends({A: 20}, 130.0)
    assert [one.lag_secs for one in made.statistics(now=150.0)] == [50.0]
    [split] = made.plan(20, 0.0)
    made.finish(split, [(0, 10)])
    assert [(one.lag, one.lag_secs) for one in made.statistics(now=150.0)] == [(10, 20.0)]
    made.finish(split, [(10, 20)])
    assert [(one.lag, one.lag_secs) for one in made.statistics(now=150.0)] == [(0, 0.0)]


def test_a_topic_that_is_away_is_not_read(caplog: pytest.LogCaptureFixture) -> None:
    """It may come back, with what was under way."""
    made = assignment((A, 100), (B, 100))
    splits = made.plan(2000, 0.0)
    made.note_ends({A: 200, B: 200})
    made.note_there([A])
    assert [s.data["topic"] for s in made.plan(2000, 0.0)] == ["a"]
    assert caplog.messages == [
        "b/1 is gone from the cluster: nothing is read from it. It was planned up to the offset "
        "100, and its last known end is 200 (topic id id)"
    ]
    made.note_there([A, B])
    for split in splits:
        made.finish(split, [(0, split.count)])
    assert {p: stored.offset for p, stored in made.commits().items()} == {A: 100, B: 100}


def test_a_snapshot_goes_on() -> None:
    """With what is done beyond the commit point, and with what is owed."""
    made = assignment((A, 100))
    [split] = made.plan(50, 0.0)
    made.finish(split, [(10, 20)])
    made.note_held({A: CommittedOffset(0, "us")})
    again = restored(made)
    again.note_ends({A: 100})
    assert again.commits() == {A: stored(0, [(10, 20)])}
    assert planned(again.plan(50, 0.0)) == [("a", 50, 100)]
    again.finish(split, [(0, 10), (20, 50)])
    assert again.commits() == {A: stored(50, [])}
    assert again.known == {A: Known("id", 100, 50, CommittedOffset(0, "us"))}


def test_lost_offsets_stay_counted_under_the_next_driver() -> None:
    """The driver that noticed may die before anybody has asked it."""
    made = assignment((A, 100))
    made.begin(A, Beginning("id", 40, skipped=40, cut=True))
    again = restored(made)
    assert [one.expired for one in made.statistics()] == [140]
    assert [one.expired for one in again.statistics()] == [140]


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


def test_short_ranges_between_acks_are_one_split() -> None:
    """Each split costs a fetch; long ranges keep splits of their own."""
    assignment = Assignment(Limits())
    holes = [(n, n + 1) for n in range(1, 2000, 2)]
    partition = Partition("t", 0)
    assignment.begin(partition, Beginning("id", 0, holes))
    assignment.note_ends({partition: 9000})
    splits = assignment.plan(9000, 0.0)
    assert [(split.data["start"], split.count) for split in splits] == [(0, 1000), (2000, 7000)]
    assert splits[0].only == tuple(range(0, 2000, 2))
    for split in splits:
        assignment.finish(split, [(0, split.count)])
    assert assignment.commits()[partition].offset == 9000
