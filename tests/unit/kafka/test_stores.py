"""The group's offsets as a store: what is written, and who else may have written."""

import random
from collections.abc import Mapping, Sequence

import pytest

from sparkstorm.errors import CheckpointError, SpoutConnectionError
from sparkstorm.kafka.cluster import Partition
from sparkstorm.kafka.offsets.stored import CommittedOffset, Stored
from sparkstorm.kafka.offsets.stores import Committed, GroupStore, TextTooLongError

A, B = Partition("a", 0), Partition("b", 0)
IDS = {A: "id-a", B: "id-b"}


class Group:
    """A group's offsets; its answers may get lost, and it may allow short texts only."""

    def __init__(self, most_text: int = 4096) -> None:
        self.kept: dict[Partition, Committed] = {}
        self.deaf = self.mute = False
        self.most_text = most_text

    def committed(self, partitions: Sequence[Partition]) -> dict[Partition, Committed]:
        return {p: self.kept[p] for p in partitions if p in self.kept}

    def commit(self, offsets: Mapping[Partition, Committed]) -> None:
        if not self.deaf:
            fit = {p: one for p, one in offsets.items() if len(one[1]) <= self.most_text}
            self.kept.update(fit)
            if len(fit) < len(offsets):
                raise TextTooLongError("Broker: Offset metadata too large")
        if self.deaf or self.mute:
            raise SpoutConnectionError("no answer")


def test_what_is_stored_is_read_back() -> None:
    """A later run learns which run stored it, and of which topic."""
    group, stored = Group(), Stored(7, [(9, 12)], topic_id="id-a")
    saved = GroupStore(group, "t").save({A: stored}, {})
    assert saved.held == {A: CommittedOffset(7, "t")}
    assert GroupStore(group, "u").load(IDS) == {A: Stored(7, [(9, 12)], "t", "id-a")}


@pytest.mark.parametrize("text", ["{}", "hello", '{"topologyId": "storm-1"}', "[" * 3000])
def test_what_others_wrote_is_an_offset_and_no_more(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Storm's later spout, say: its offset is taken up, and the log says that its text is not."""
    group = Group()
    group.kept[A] = (5, text)
    assert GroupStore(group, "t").load(IDS) == {A: Stored(5)}
    assert "a/0: the text beside the committed offset 5 is ignored" in caplog.text


def test_an_offset_without_a_text_is_nothing_to_mention(caplog: pytest.LogCaptureFixture) -> None:
    """Most clients commit so."""
    group = Group()
    group.kept[A] = (5, "")
    assert GroupStore(group, "t").load(IDS) == {A: Stored(5)}
    assert not caplog.messages


@pytest.mark.parametrize(
    ("offset", "topic_id", "run", "why"),
    [
        (7, "id-a", "", "belongs to the offset 10"),
        (10, "id-z", "t", "belongs to another topic"),
    ],
)
def test_acks_that_were_copied_to_another_place_are_ignored(
    offset: int, topic_id: str, run: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """MirrorMaker 2 translates an offset and passes the text on: message 10 must not disappear.

    A commit for the topic before, late for its deletion, is still known for ours: no reset.
    """
    group = Group()
    GroupStore(group, "t").save({A: Stored(10, [(11, 20)], topic_id="id-a")}, {})
    group.kept[A] = (offset, group.kept[A][1])
    assert GroupStore(group, "t").load({A: topic_id}) == {A: Stored(offset, run=run)}
    assert why in caplog.text


@pytest.mark.sweep
def test_acks_that_do_not_fit_are_counted() -> None:
    group = Group()
    saved = GroupStore(group, "t").save({A: Stored(0, _scattered(100_000), topic_id="i")}, {})
    [kept] = GroupStore(group, "t").load({A: "i"}).values()
    assert len(group.kept[A][1]) <= 4095
    assert saved.dropped == 100_000 - sum(stop - start for start, stop in kept.done)


@pytest.mark.sweep
@pytest.mark.parametrize("most", [4000, 500, 100, 20, 0])
def test_a_broker_with_less_room_gets_shorter_texts(
    most: int, caplog: pytest.LogCaptureFixture
) -> None:
    """And none if not even the frame fits; the offsets are committed in any case."""
    group = Group(most)
    store = GroupStore(group, "t")
    wanted = Stored(3, _scattered(100_000, base=3), topic_id="id-a")
    saved = store.save({A: wanted, B: Stored(1, topic_id="id-b")}, {})
    assert (group.kept[A][0], group.kept[B][0]) == (3, 1)
    assert len(group.kept[A][1]) > most * 3 // 4 - 6 or most < 120
    assert saved.dropped > 0
    assert saved.held[A] == CommittedOffset(3, "t", bare=not group.kept[A][1])
    assert "offset.metadata.max.bytes" in caplog.text
    before = len(caplog.messages)
    store.save({A: wanted._replace(offset=4)}, {})
    assert len(caplog.messages) == before, "it is learned once"


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
    group.kept[A] = (0, "")
    with pytest.raises(CheckpointError, match="another program has committed the offset 0"):
        second.save({A: Stored(5)}, {})


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


@pytest.mark.parametrize("how", ["deaf", "mute"])
def test_commits_that_fail_for_long_are_not_collected(how: str) -> None:
    """Each may be 12 KB; the last one that arrived is known all the same."""
    group = Group()
    store = GroupStore(group, "t")
    store.save({A: Stored(0)}, {})
    setattr(group, how, True)
    for offset in range(1, 100):
        with pytest.raises(SpoutConnectionError):
            store.save({A: Stored(offset)}, {})
    assert len(store._ours[A]) < 12
    setattr(group, how, False)
    store.save({A: Stored(100)}, {})
    assert group.kept[A][0] == 100


def _scattered(count: int, base: int = 0) -> list[tuple[int, int]]:
    """Done offsets far apart in no pattern: more than any text has room for."""
    dice = random.Random(0)
    starts = [base + 10 * n + dice.randint(1, 8) for n in range(count)]
    return [(start, start + 1) for start in starts]
