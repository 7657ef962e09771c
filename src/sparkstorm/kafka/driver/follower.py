"""Follows the partitions of one spout task: their news come in, their progress goes out."""

from collections.abc import Callable
from typing import final

from sparkstorm.clock import Clock, SystemClock
from sparkstorm.kafka.assignment import Assignment
from sparkstorm.kafka.client.desk import KafkaDesk
from sparkstorm.kafka.cluster import Cluster, Partition
from sparkstorm.kafka.driver.watch import Watch
from sparkstorm.kafka.offsets.beginnings import Beginnings
from sparkstorm.kafka.offsets.committer import Committer
from sparkstorm.kafka.offsets.stored import ProgressStore
from sparkstorm.kafka.offsets.stores import GroupStore
from sparkstorm.kafka.offsets.zookeeper import ZooKeeperProgress
from sparkstorm.kafka.subscription import Subscription

__all__ = ["Follower"]


@final
class Follower:
    """The connections of one spout task in the driver; there are none before :meth:`open`.

    Args:
        cluster: where.
        group: the consumer group.
        source: what is read.
        progress: the store of progress; None for the group's committed offsets.
        assignment: the task's partitions.
        commit_secs: how often changed progress is stored.
        renew_secs: how often all progress is stored, so that brokers do not forget the group.
        refresh_secs: how often to look for new topics and partitions.
    """

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        source: Subscription,
        progress: ZooKeeperProgress | None,
        assignment: Assignment,
        *,
        commit_secs: float,
        renew_secs: float,
        refresh_secs: float,
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._source = source
        self._progress = progress
        self._assignment = assignment
        self._commit_secs = commit_secs
        self._renew_secs = renew_secs
        self._refresh_secs = refresh_secs
        self._clock: Clock = SystemClock()
        self._committed_at = self._renewed_at = float("-inf")
        self._watch: Watch | None = None
        self._committer: Committer | None = None

    @property
    def ready(self) -> bool:
        """Whether the connections are open and the cluster answers."""
        return self._watch is not None and not self._watch.trouble

    @property
    def age_secs(self) -> float:
        """Seconds since the cluster last answered."""
        return 0.0 if self._watch is None else self._watch.age_secs

    def open(
        self,
        run: str,
        topology: str,
        mine: Callable[[Partition], bool],
        clock: Clock,
        patience_secs: float,
    ) -> None:
        """Find the partitions of the task, waiting for the cluster if need be.

        Args:
            run: the name under which this run stores progress.
            topology: the topology's name.
            mine: whether a partition belongs to the task.
            clock: tells when to store.
            patience_secs: how long to wait for a cluster that does not answer.
        """
        self._clock = clock
        desk = KafkaDesk(self._cluster, self._group)
        self._committer = Committer(self._store(desk, run, topology))
        beginnings = Beginnings(desk, self._committer, self._source, run)
        self._watch = Watch(desk, beginnings, self._source, mine, refresh_secs=self._refresh_secs)
        try:
            self._watch.start(self._assignment.known, patience_secs)
        except BaseException:
            self._leave(self._watch, self._committer)
            raise
        self.take_news()

    def close(self) -> None:
        """Store the progress of all partitions and leave the cluster."""
        if self._watch is not None and self._committer is not None:
            self._committer.put(self._assignment.commits(everything=True), self._watch.topics)
            self._leave(self._watch, self._committer)
            self._watch = self._committer = None

    def take_news(self) -> None:
        """Let the assignment know what the cluster has said, and what is stored."""
        if self._watch is None or self._committer is None:
            return
        now = self._clock.monotonic()
        for news in self._watch.take(self._assignment.positions):
            if news.there is not None:
                self._assignment.note_there(news.there)
            for partition, beginning in news.begun.items():
                self._assignment.begin(partition, beginning)
                # until then the group may show offsets of a topic that was made anew
                self._committed_at = float("-inf")
            for jump in news.jumps:
                self._assignment.jump(*jump)
            self._assignment.note_ends(news.cuts, now)
            self._assignment.note_ends(news.ends, now)
        self._assignment.note_held(self._committer.take())

    def commit_if_due(self) -> None:
        """Store what has changed, if the time has come; now and then everything."""
        now = self._clock.monotonic()
        if self._watch is None or self._committer is None:
            return
        if now - self._committed_at < self._commit_secs:
            return
        renew = now - self._renewed_at >= self._renew_secs
        self._committed_at = now
        self._renewed_at = now if renew else self._renewed_at
        self._committer.put(self._assignment.commits(everything=renew), self._watch.topics)

    def _store(self, desk: KafkaDesk, run: str, topology: str) -> ProgressStore:
        if self._progress is None:
            return GroupStore(desk, run)
        names = {"id": run, "name": topology}
        return self._progress.open(names, several=self._source.several)

    def _leave(self, watch: Watch, committer: Committer) -> None:
        """Store what waits, and close the connections that nobody uses any more."""
        watch.close(in_use=not committer.close())
