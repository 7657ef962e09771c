"""The watch of a cluster: what it does with what a cluster says. The cluster is a fake."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest

from sparkstorm.errors import CheckpointError, InternalError, SpoutConnectionError
from sparkstorm.kafka.cluster import Partition, Topic
from sparkstorm.kafka.driver.watch import Watch
from sparkstorm.kafka.offsets.beginnings import Beginning, Beginnings, Jump, Known, is_ours
from sparkstorm.kafka.offsets.stored import CommittedOffset, Stored
from sparkstorm.kafka.subscription import Subscription

A, B = Partition("a", 0), Partition("a", 1)


class Cluster:
    """Topics, by name their id and the (start, end) of each partition."""

    def __init__(self, **topics: tuple[str, Sequence[tuple[int, int]]]) -> None:
        self.given = topics
        self.away: Exception | None = None
        self.cut: dict[Partition, int] = {}
        self.silent = False
        self.closed = False

    def topic_names(self) -> list[str]:
        return sorted(self.given)

    def topics(self, names: Sequence[str]) -> dict[str, Topic]:
        if self.away is not None:
            raise self.away
        return {
            name: Topic(name, self.given[name][0], dict.fromkeys(range(len(self.given[name][1]))))
            for name in names
            if name in self.given
        }

    def starts(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return {p: log[0] for p, log in self._logs(partitions)}

    def ends(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return {p: log[1] for p, log in self._logs(partitions)}

    def _logs(self, partitions: Collection[Partition]) -> list[tuple[Partition, tuple[int, int]]]:
        there = [p for p in partitions if p.topic in self.given and not self.silent]
        return [(p, self.given[p.topic][1][p.number]) for p in there]

    def at(self, partitions: Collection[Partition], millis: int) -> dict[Partition, int]:
        return dict.fromkeys(partitions, millis)

    def log_ends(self, partitions: Any) -> dict[Partition, int]:
        return self.ends(partitions)

    def cuts(self) -> dict[Partition, int]:
        cut, self.cut = self.cut, {}
        return cut

    def close(self) -> None:
        self.closed = True


class Progress:
    """What is stored."""

    def __init__(self, **stored: Stored) -> None:
        self.kept = {Partition(name, 0): one for name, one in stored.items()}

    def load(self, ids: Mapping[Partition, str]) -> dict[Partition, Stored]:
        return {p: self.kept[p] for p in ids if p in self.kept}


def watch_of(
    cluster: Cluster, progress: Progress | None = None, refresh_secs: float = 0.0, **given: Any
) -> Watch:
    source = Subscription(**{"topics": "a", **given})
    beginnings = Beginnings(cluster, progress or Progress(), source, "us")
    return Watch(cluster, beginnings, source, lambda _: True, refresh_secs=refresh_secs)


def test_new_partitions_begin_where_the_user_says_and_later_ones_at_their_start() -> None:
    """What comes into being while we run is read whole."""
    cluster = Cluster(a=("1", [(3, 10)]))
    watch = watch_of(cluster, start="latest")
    watch.look()
    [news] = watch.take({})
    assert (news.begun, news.ends) == ({A: Beginning("1", 10)}, {A: 10})
    cluster.given["a"] = ("1", [(3, 10), (2, 5)])
    watch.look()
    [news] = watch.take({A: 10})
    why = "it begins at 2: 2 offsets were gone before they were read"
    assert news.begun == {B: Beginning("1", 2, why=why, skipped=2)}
    assert news.there == frozenset({A, B})


def test_stored_progress_is_taken_up() -> None:
    progress = Progress(a=Stored(4, [(6, 8)], "they"))
    watch = watch_of(Cluster(a=("1", [(0, 10)])), progress, start="latest")
    watch.look()
    [news] = watch.take({})
    assert news.begun == {A: Beginning("1", 4, [(6, 8)], held=CommittedOffset(4, "they"))}


def test_without_progress_committed_is_an_error() -> None:
    with pytest.raises(SpoutConnectionError, match="no progress stored for a/0"):
        watch_of(Cluster(a=("1", [(0, 10)])), start="committed").look()


def test_a_log_that_has_passed_us_is_left_for_its_start() -> None:
    """At the policy's place."""
    cluster = Cluster(a=("1", [(0, 100)]))
    watch = watch_of(cluster)
    watch.look()
    watch.take({A: 20})
    cluster.given["a"] = ("1", [(50, 100)])
    watch.look()
    assert [news.jumps for news in watch.take({A: 20})] == [(Jump(A, 50, 50),)]


def test_another_topic_of_the_name_is_begun_anew() -> None:
    cluster = Cluster(a=("1", [(0, 100)]))
    watch = watch_of(cluster)
    watch.look()
    watch.take({A: 100})
    cluster.given["a"] = ("2", [(0, 3)])
    watch.look()
    [news] = watch.take({A: 100})
    assert news.begun[A][:2] == ("2", 0)
    assert "deleted and made anew, the topic id 1 became 2" in news.begun[A].why
    watch.look()
    [news] = watch.take({A: 0})
    assert not news.begun, "once"
    cluster.given["a"] = ("3", [(40, 50)])
    watch.look()
    [news] = watch.take({A: 0})
    assert (news.begun[A].offset, news.begun[A].skipped) == (40, 40), "no log begins there"


def test_a_topic_that_is_made_anew_while_there_is_no_checkpoint_is_told_of() -> None:
    """The stored progress of the old one is all that is known."""
    watch = watch_of(Cluster(a=("2", [(0, 3)])), Progress(a=Stored(50, (), "us", "1")))
    watch.look()
    [news] = watch.take({})
    assert news.begun[A][:2] == ("2", 0)
    assert "the topic id 1 became 2" in news.begun[A].why
    assert "The stored progress 50 is all that is known of the old topic" in news.begun[A].why


def test_a_new_topic_that_does_not_say_yet_where_it_begins_is_waited_for() -> None:
    """It has no leader for a moment: it is neither begun elsewhere nor read under its old id."""
    cluster = Cluster(a=("1", [(0, 100)]))
    silent = watch_of(cluster, Progress(a=Stored(50, (), "us", "0")))
    cluster.silent = True
    with pytest.raises(SpoutConnectionError, match="a/0 does not say where it begins"):
        silent.look()
    cluster.silent = False
    silent.look()
    assert silent.take({})[0].begun[A].offset == 0
    cluster.given["a"], cluster.silent = ("2", [(0, 300)]), True
    silent.look()
    [news] = silent.take({A: 100})
    assert (news.begun, news.there) == ({}, frozenset())
    cluster.silent = False
    silent.look()
    [news] = silent.take({A: 100})
    assert news.begun[A][:2] == ("2", 0)


def test_a_topic_that_goes_and_comes_back_is_the_same() -> None:
    """Nothing is begun a second time."""
    cluster = Cluster(a=("1", [(0, 9)]), b=("1", []))
    watch = watch_of(cluster, topics=["a", "b"])
    watch.look()
    watch.take({A: 9})
    kept = cluster.given.pop("a")
    watch.look()
    assert [news.there for news in watch.take({A: 9})] == [frozenset()]
    cluster.given["a"] = kept
    watch.look()
    [news] = watch.take({A: 9})
    assert news.there == frozenset({A})
    assert not news.begun


def test_untaken_news_do_not_become_many() -> None:
    """Nobody takes them while a long batch runs."""
    cluster = Cluster(a=("1", [(0, 0)]))
    watch = watch_of(cluster)
    for end in range(100):
        cluster.given["a"] = ("1", [(0, end)])
        watch.look()
    news = watch.take({})
    assert len(news) == 1
    assert news[0].begun
    assert news[0].ends == {A: 99}


def test_offsets_to_start_at_are_taken() -> None:
    """Where none is named, the start; what the log does not have goes by the policy."""
    cluster = Cluster(a=("1", [(3, 10), (3, 10), (3, 10)]))
    watch = watch_of(cluster, start={"a": {0: 7, 1: 99}}, out_of_range="latest")
    watch.look()
    [news] = watch.take({})
    begun = [news.begun[Partition("a", number)] for number in range(3)]
    assert [one.offset for one in begun] == [7, 10, 3]
    assert begun[1].why == "the log has no offset 99, it goes from 3 to 10: going on at 10"


@pytest.mark.parametrize(("policy", "to"), [("earliest", 2), ("latest", 15)])
def test_a_log_that_gets_shorter_while_we_run(policy: str, to: int) -> None:
    """Whatever was read beyond its new end; it is seen at the next look, and said once."""
    cluster = Cluster(a=("1", [(0, 100)]))
    watch = watch_of(cluster, out_of_range=policy, refresh_secs=1000.0)
    watch.look()
    watch.take({})
    watch.look()
    watch.take({A: 60})
    cluster.given["a"] = ("1", [(2, 15)])
    watch.look()
    watch.look()
    *_, news = watch.take({A: 60})
    assert news.begun[A][:2] == ("1", to)
    assert news.begun[A].cut
    assert f"no offset 60, it goes from 2 to 15: going on at {to}" in news.begun[A].why
    watch.look()
    assert not any(one.begun for one in watch.take({A: to}))


def test_a_log_that_was_cut_and_has_grown_again() -> None:
    """Only the epochs of its leaders tell: reading goes on at the cut."""
    cluster = Cluster(a=("1", [(0, 100)]))
    watch = watch_of(cluster)
    watch.look()
    watch.take({})
    watch.take({A: 60})
    cluster.given["a"], cluster.cut = ("1", [(0, 120)]), {A: 40}
    watch.look()
    [news] = watch.take({A: 60})
    assert (news.begun[A].offset, news.begun[A].regrown, news.ends) == (40, True, {A: 120})
    cluster.cut = {A: 70}
    watch.take({A: 60})
    watch.look()
    [news] = watch.take({A: 60})
    assert (news.begun, news.cuts, news.ends) == ({}, {A: 70}, {A: 120}), "the planned is there"
    watch.look()
    assert not watch.take({A: 60})[0].cuts, "once"


def test_a_log_that_gets_shorter_may_be_an_error() -> None:
    """At any time, not only at the start."""
    cluster = Cluster(a=("1", [(0, 100)]))
    watch = watch_of(cluster, out_of_range="fail")
    watch.look()
    watch.take({})
    watch.take({A: 60})
    cluster.given["a"] = ("1", [(0, 15)])
    with pytest.raises(SpoutConnectionError, match="no offset 60, it goes from 0 to 15"):
        watch.look()


def test_a_shorter_log_of_another_topic_is_that_topics() -> None:
    """The end falls before anybody has asked for the topics anew."""
    cluster = Cluster(a=("1", [(0, 100)]))
    watch = watch_of(cluster, refresh_secs=1000.0)
    watch.look()
    watch.take({A: 100})
    cluster.given["a"] = ("2", [(0, 3)])
    watch.look()
    [news] = watch.take({A: 100})
    assert news.begun[A][:2] == ("2", 0)
    assert not news.begun[A].cut


def test_acks_beyond_the_end_are_none_of_this_log() -> None:
    """New records will get these offsets."""
    cluster = Cluster(a=("1", [(0, 10)]))
    watch = watch_of(cluster, Progress(a=Stored(5, [(8, 20)])))
    watch.look()
    [news] = watch.take({})
    assert news.begun[A][:3] == ("1", 0, ())
    assert "the log has no offset 20" in news.begun[A].why


OURS, BARE = CommittedOffset(50, "us"), CommittedOffset(50, "us", bare=True)


@pytest.mark.parametrize(
    ("stored", "held", "ours"),
    [
        (Stored(50, run="us"), OURS, True),
        (Stored(58, run="us"), OURS, True),  # the driver died before it could say so
        (Stored(50, run="us"), None, True),
        (Stored(999, run="us"), OURS, True),  # for the topic before, which was being deleted
        (Stored(50), OURS, False),  # a tool leaves no text
        (Stored(7), OURS, False),
        (Stored(7, run="they"), OURS, False),
        (Stored(7), CommittedOffset(7, ""), True),  # it died before it could commit
        (Stored(8), CommittedOffset(7, ""), False),
        (Stored(7), None, False),
        (Stored(55), BARE, True),
        (Stored(49), BARE, False),
        (Stored(61), BARE, False),
    ],
)
def test_who_set_the_stored_offset(
    stored: Stored, held: CommittedOffset | None, ours: bool
) -> None:
    """By the run's name beside it, and by what the checkpoint says was there."""
    assert is_ours(stored, Known("1", 60, 40, held), "us") is ours


def restored(on_reset: str, stored: Stored, known: Known) -> Watch:
    """A watch that has begun with a checkpoint."""
    cluster = Cluster(a=("1", [(0, 100)]))
    watch = watch_of(cluster, Progress(a=stored), on_reset=on_reset, refresh_secs=1000.0)
    watch.start({A: known}, 0.0)
    return watch


def test_a_reset_is_not_passed_over() -> None:
    """The error names both offsets, and the two ways on."""
    with pytest.raises(CheckpointError, match="its stored offset is 7 now") as caught:
        restored("fail", Stored(7), Known("1", 60, 40, OURS))
    for words in ("a/0", "goes on at 40", "on_reset='follow'", "on_reset='ignore'"):
        assert words in str(caught.value)


def test_a_reset_is_followed_or_ignored(caplog: pytest.LogCaptureFixture) -> None:
    """As the user says; neither is silent."""
    watch = restored("follow", Stored(7), Known("1", 60, 40, OURS))
    begun = watch.take({A: 60})[0].begun[A]
    assert (begun.offset, begun.held, begun.why) == (
        7,
        CommittedOffset(7, ""),
        "it was reset: going on at 7, and not at 40",
    )
    watch.close()
    watch = restored("ignore", Stored(7), Known("1", 60, 40, OURS))
    assert not watch.take({A: 60})[0].begun
    assert "a/0 was reset to the offset 7 while the topology was stopped" in caplog.text
    watch.close()
    for policy in ("fail", "follow", "ignore"):
        watch = restored(policy, Stored(44, run="us"), Known("1", 60, 40, OURS))
        assert not watch.take({A: 60})[0].begun
        watch.close()


def test_an_error_of_ours_reaches_the_task() -> None:
    """The thread must not end without a word: nothing would be read any more."""
    cluster = Cluster(a=("1", [(0, 0)]))
    watch = watch_of(cluster)
    watch.look()
    cluster.away = KeyError("bug")
    with pytest.raises(KeyError):
        watch._run()
    with pytest.raises(InternalError, match="the watch of a cluster ended"):
        watch.take({})
    watch.close()
    assert cluster.closed
