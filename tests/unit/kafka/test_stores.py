"""The group's offsets as a store: what is written, and who else may have written."""

import random
from collections.abc import Mapping, Sequence

import pytest

from sparkstorm.errors import CheckpointError, SpoutConnectionError
from sparkstorm.kafka.cluster import Partition
from sparkstorm.kafka.stores import Committed, GroupStore, Stored, to_text

A, B = Partition("a", 0), Partition("b", 0)


class Group:
    """A group's offsets; its answers may get lost."""

    def __init__(self) -> None:
        self.kept: dict[Partition, Committed] = {}
        self.deaf = self.mute = False

    def committed(self, partitions: Sequence[Partition]) -> dict[Partition, Committed]:
        return {p: self.kept[p] for p in partitions if p in self.kept}

    def commit(self, offsets: Mapping[Partition, Committed]) -> None:
        if not self.deaf:
            self.kept.update(offsets)
        if self.deaf or self.mute:
            raise SpoutConnectionError("no answer")


def test_what_is_stored_is_read_back() -> None:
    group = Group()
    GroupStore(group, "t").save({A: Stored(7, [(9, 12)])}, {})
    assert GroupStore(group, "u").load([A, B]) == {A: Stored(7, [(9, 12)], "t")}


@pytest.mark.parametrize("text", ["", "{}", "hello", '{"topologyId": "storm-1", "taskId": 3}'])
def test_what_others_wrote_is_an_offset_and_no_more(text: str) -> None:
    """Storm's later spout, say: its offset is taken up."""
    group = Group()
    group.kept[A] = (5, text)
    assert GroupStore(group, "t").load([A]) == {A: Stored(5)}


@pytest.mark.sweep
def test_acks_that_do_not_fit_are_counted() -> None:
    """And the text is never longer than a broker takes."""
    dice = random.Random(0)
    starts = [10 * n + dice.randint(1, 8) for n in range(30_000)]
    holes = [(start, start + 1) for start in starts]
    stored = Stored(0, holes)
    text, kept_to = to_text(stored, "t")
    assert len(text) <= 4095
    dropped = GroupStore(Group(), "t").save({A: stored}, {})
    assert 0 < dropped < 30_000
    assert dropped == sum(1 for start, _ in holes if start >= kept_to)


def test_the_earlier_of_two_runs_notices_the_other() -> None:
    """It ends, instead of moving the other's offsets back and forth."""
    group = Group()
    first, second = GroupStore(group, "first"), GroupStore(group, "second")
    first.save({A: Stored(1)}, {})
    second.save({A: Stored(2)}, {})
    with pytest.raises(CheckpointError, match="'second' has committed the offset 2 of a/0"):
        first.save({A: Stored(3)}, {})
    second.save({A: Stored(4)}, {})
    assert group.kept[A][0] == 4


def test_a_commit_whose_answer_was_lost_may_be_there_or_not() -> None:
    """Neither is taken for somebody else's."""
    group = Group()
    store = GroupStore(group, "t")
    store.save({A: Stored(1)}, {})
    for offset, how in ((2, "deaf"), (3, "mute"), (4, "deaf")):
        setattr(group, how, True)
        with pytest.raises(SpoutConnectionError):
            store.save({A: Stored(offset)}, {})
        setattr(group, how, False)
    store.save({A: Stored(5)}, {})
    assert group.kept[A][0] == 5
    del group.kept[A]  # the broker forgets what was not renewed for long
    store.save({A: Stored(6)}, {})
    assert group.kept[A][0] == 6
