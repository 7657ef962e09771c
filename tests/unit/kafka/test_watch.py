"""The watch of a cluster: what it does with what a cluster says. The cluster is a fake."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sparkstorm.errors import InternalError, SpoutConnectionError
from sparkstorm.kafka.assignment import Beginning
from sparkstorm.kafka.cluster import Partition, Topic
from sparkstorm.kafka.source import Source
from sparkstorm.kafka.stores import Stored
from sparkstorm.kafka.watch import Jump, Watch

A, B = Partition("a", 0), Partition("a", 1)


class Cluster:
    """Topics, by name their id and the (start, end) of each partition."""

    def __init__(self, **topics: tuple[str, Sequence[tuple[int, int]]]) -> None:
        self.given = topics
        self.away: Exception | None = None
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

    def starts(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        return {p: self.given[p.topic][1][p.number][0] for p in partitions}

    def ends(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        return {p: self.given[p.topic][1][p.number][1] for p in partitions}

    def at(self, partitions: Sequence[Partition], millis: int) -> dict[Partition, int]:
        return dict.fromkeys(partitions, millis)

    def close(self) -> None:
        self.closed = True


class Store:
    """Progress in memory; it may be away."""

    def __init__(self, **stored: Stored) -> None:
        self.kept: dict[Partition, Stored] = {
            Partition(name, 0): one for name, one in stored.items()
        }
        self.away = False
        self.drops = 0

    def load(self, partitions: Sequence[Partition]) -> dict[Partition, Stored]:
        return {p: self.kept[p] for p in partitions if p in self.kept}

    def save(self, progress: Mapping[Partition, Stored], topics: Mapping[str, Topic]) -> int:
        if self.away:
            raise SpoutConnectionError("the store is away")
        self.kept.update(progress)
        return self.drops

    def close(self) -> None:
        """Nothing."""


def watch_of(cluster: Cluster, store: Store | None = None, **source: Any) -> Watch:
    given = {"topics": "a", **source}
    return Watch(cluster, store or Store(), Source(**given), lambda _: True, refresh_secs=0.0)


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
    assert news.begun == {B: Beginning("1", 2)}
    assert news.there == frozenset({A, B})


def test_stored_progress_is_taken_up() -> None:
    watch = watch_of(Cluster(a=("1", [(0, 10)])), Store(a=Stored(4, [(6, 8)])), start="latest")
    watch.look()
    [news] = watch.take({})
    assert news.begun == {A: Beginning("1", 4, [(6, 8)])}


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
    assert "deleted and made anew" in news.begun[A].why
    watch.look()
    [news] = watch.take({A: 0})
    assert not news.begun, "once"


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


def test_what_could_not_be_stored_waits(caplog: pytest.LogCaptureFixture) -> None:
    """Newer progress replaces it, and none is lost."""
    store = Store()
    watch = watch_of(Cluster(a=("1", [(0, 0)])), store)
    store.away = True
    watch.commit({A: Stored(1), B: Stored(5)})
    with pytest.raises(SpoutConnectionError):
        watch.look()
    watch.commit({A: Stored(2)})
    store.away = False
    store.drops = 7
    watch.look()
    assert store.kept == {A: Stored(2), B: Stored(5)}
    assert "7 acks beyond the committed offsets do not fit" in caplog.text
    assert watch.acks_dropped == 7


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
