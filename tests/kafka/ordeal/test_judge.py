"""The judge of an ordeal convicts whoever loses a record in silence, and nobody else."""

import json
from itertools import pairwise

import pytest

from tests.kafka.ordeal.evidence import Book, Record, Spot
from tests.kafka.ordeal.judge import judge

WHEN = {"begin": 5.0, "end": 6.0}


def book_of(*lines: str, lives: str = "AB", of: str = "A") -> Book:
    """Ten records of a topic, of which a driver has processed the first three."""
    book = Book(lives=[*lives])
    book.given = {number: Record(Spot(of, 0, number), float(number)) for number in range(10)}
    book.arrived = [0, 1, 2]
    book.troubles = [{"kind": "delete", "partition": 0, "low": 10, **WHEN}]
    for old, new in pairwise(book.lives):
        book.troubles.append({"kind": "remake", "old": old, "new": new, "ends": [10], **WHEN})
    book.read_log(lines)
    return book


def warned(said: str, at: float = 20.0, pid: int = 7) -> str:
    return f"{at} {pid} orders/0: {said}"


def figures(end: int, batches: int, *, expired: int = 0, pid: int = 7) -> str:
    partitions = {"orders/0": {"expired": expired, "end": end}}
    return f"9.5 {pid} stands {json.dumps({'batches': batches, 'partitions': partitions})}"


def anew(start: int, end: int, pid: int = 7) -> str:
    return warned(
        "its topic was deleted and made anew, the topic id A became B: it is read from its "
        f"beginning, the offset 0. The old topic was planned up to the offset {start}, and its "
        f"last known end is {end}: {end - start} offsets were not read, nor any that came later",
        pid=pid,
    )


def test_a_record_that_nobody_mentions_is_lost_in_silence() -> None:
    """The story says which, and what happened around it."""
    book = book_of(warned("is gone from the cluster: nothing is read from it"), lives="A")
    book.troubles.append({"kind": "driver", **WHEN})
    book.dead = {4}
    [fault] = judge(book).faults
    assert "6 missing records were lost in silence: topic A (number 0 of 1), partition 0" in fault
    assert "offsets 3-3, 5-9, written 3.0 to 9.0" in fault
    assert "that were done: 0-2, 4-4" in fault
    assert "'kind': 'driver'" in fault
    assert "is gone from the cluster" in fault


def test_records_that_a_warning_names_are_accounted_for_if_they_are_counted() -> None:
    said = warned("the log has no offset 3, it begins at 10: going on at 10; 7 offsets are skipped")
    found = judge(book_of(said, figures(10, 1, expired=7), lives="A"))
    assert (found.faults, found.fates["counted"]) == ([], 7)
    [fault] = judge(book_of(said, figures(10, 1, expired=6), lives="A")).faults
    assert fault == "partition 0: 7 are gone, and expired is 6"


@pytest.mark.parametrize(
    "said",
    [
        "the log has no offset 3, it goes from 10 to 12: going on at 10",
        "the log has become shorter, it ended at 10 and ends at 3 now: 7 offsets were gone",
        "it begins at 10: 10 offsets were gone before they were read",
    ],
)
def test_each_warning_of_a_cut_is_understood(said: str) -> None:
    assert judge(book_of(warned(said), figures(10, 1, expired=10), lives="A")).faults == []


def test_a_record_that_the_log_has_is_not_gone_whatever_is_said() -> None:
    """Neither by a count nor by a dead letter without it."""
    book = book_of(lives="A")
    book.troubles, book.expired = [], {Spot("A", 0, number) for number in range(3, 10)}
    [fault] = judge(book).faults
    assert "7 missing records were in the log all the time: topic A" in fault


def test_a_range_of_one_topic_excuses_no_other() -> None:
    """Offsets begin again in each topic of the name."""
    cut = warned("the log has no offset 3, it begins at 10: going on at 10; 7 offsets are skipped")
    book = book_of(cut, anew(10, 10), figures(10, 1, expired=7), lives="ABC", of="B")
    [fault] = judge(book).faults
    assert "7 missing records were lost in silence: topic B" in fault


def test_a_deleted_topic_is_accounted_for_up_to_its_last_known_end() -> None:
    """Behind that end nobody can count, but the warning has to be there."""
    found = judge(book_of(anew(3, 6), figures(0, 1, expired=3)))
    assert found.faults == []
    assert (found.fates["counted"], found.fates["behind the last known end"]) == (3, 4)
    [fault] = judge(book_of()).faults
    assert "7 missing records were lost in silence: topic A (number 0 of 2)" in fault


def test_the_last_known_end_is_not_forgotten() -> None:
    """By the driver that saw it, or by the one after a batch that has it in the checkpoint."""
    seen = [figures(0, 1), figures(8, 3), figures(8, 5), figures(8, 7, expired=9)]
    for pid in (7, 8):
        [fault] = judge(book_of(*seen, anew(3, 6, pid=pid))).faults
        assert fault.startswith("the end 8 was known: ")
        assert judge(book_of(*seen, anew(3, 8, pid=pid))).faults == []
    assert judge(book_of(*seen[:2], figures(0, 3, expired=9), anew(3, 6, pid=8))).faults == []


def test_a_topic_that_no_driver_has_met_is_nobodys_fault() -> None:
    book = book_of(lives="ABC", of="B")
    book.arrived = []
    assert judge(book).faults == []
    book.expired = {Spot("B", 0, 0)}
    assert len(judge(book).faults) == 1


def test_records_that_fail_for_ever_must_not_be_processed() -> None:
    book = book_of(lives="A")
    book.arrived = [*range(10)]
    assert judge(book).faults == ["7 fails for ever and was processed"]
