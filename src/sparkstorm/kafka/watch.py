"""The thread that talks to the cluster for one spout task, so that planning never waits for it.

Each look asks where the partitions end, now and then which there are and where they begin, and
stores what is to be committed. What it finds is news, taken up by the task (:meth:`Watch.take`) at
its next plan. If the cluster is away, it says so once, and goes on trying.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol, final

from sparkstorm.errors import InternalError, SparkstormError, SpoutConnectionError
from sparkstorm.kafka.assignment import Beginning
from sparkstorm.kafka.client.troubles import RefusedError
from sparkstorm.kafka.cluster import Partition, Topic
from sparkstorm.kafka.source import OutOfRange, Source, Start, millis_of
from sparkstorm.kafka.stores import ProgressStore, Stored
from sparkstorm.texts.logs import logger_of

__all__ = ["ClusterView", "Jump", "News", "Watch"]

_LOOK_SECS = 0.1
_AWAY_SECS = 0.5
"""The pause after a look that failed."""
_TOPIC_SECS = 5.0
"""A topic that is missing at the start may be on its way: brokers that start know of none yet."""
_SAY_SECS = 10.0
"""How often waiting for a cluster at the start is mentioned."""

_logger = logger_of("sparkstorm.kafka")


class ClusterView(Protocol):
    """What a watch asks a cluster; see :class:`sparkstorm.kafka.client.desk.KafkaDesk`."""

    def topic_names(self) -> list[str]:
        """The names of all topics."""
        ...

    def topics(self, names: Sequence[str]) -> dict[str, Topic]:
        """Those of these topics that exist."""
        ...

    def starts(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """The first offsets that the logs still have."""
        ...

    def ends(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """The last stable offsets."""
        ...

    def at(self, partitions: Sequence[Partition], millis: int) -> dict[Partition, int]:
        """The first offsets of that time or later."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class Jump(NamedTuple):
    """Where to go on with a partition whose next offset is gone."""

    partition: Partition
    low: int
    """The first offset that is left."""
    to: int


class News(NamedTuple):
    """What one look found."""

    ends: dict[Partition, int]
    begun: Mapping[Partition, Beginning] = MappingProxyType({})
    jumps: tuple[Jump, ...] = ()
    there: frozenset[Partition] | None = None
    """Every partition that there is, if it was looked for."""


@final
class Watch:
    """Looks after the partitions of one spout task.

    Args:
        cluster: whom to ask.
        store: where progress is kept.
        source: what is read.
        mine: whether a partition belongs to this task.
        refresh_secs: how often to look for new topics and partitions.
    """

    def __init__(
        self,
        cluster: ClusterView,
        store: ProgressStore,
        source: Source,
        mine: Callable[[Partition], bool],
        *,
        refresh_secs: float = 5.0,
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._source = source
        self._mine = mine
        self._refresh_secs = refresh_secs
        self._refreshed: float | None = None
        self._topics: dict[str, Topic] = {}
        self._partitions: tuple[Partition, ...] = ()
        self._lock = threading.Lock()
        self._news: list[News] = []
        self._ids: dict[Partition, str] = {}
        self._positions: Mapping[Partition, int] = {}
        self._commits: dict[Partition, Stored] = {}
        self._fatal: SparkstormError | None = None
        self._trouble = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sparkstorm-kafka", daemon=True)
        self.acks_dropped = 0

    @property
    def trouble(self) -> str:
        """What keeps the cluster from answering; empty if it does."""
        return self._trouble

    def start(self, known: Mapping[Partition, tuple[str, int]], patience_secs: float) -> None:
        """Look for the first time, then go on looking on a thread of its own.

        Args:
            known: what the task goes on with: topic ids, and up to where each is planned.
            patience_secs: how long to wait for a cluster that does not answer.

        Raises:
            SpoutConnectionError: it did not answer, refused us, or lacks a topic that was named.
        """
        self._ids = {partition: topic_id for partition, (topic_id, _) in known.items()}
        self._positions = {partition: offset for partition, (_, offset) in known.items()}
        began = say = time.monotonic()
        while True:
            try:
                self.look()
                break
            except SpoutConnectionError as error:
                now = time.monotonic()
                self._check_patience(error, now - began, patience_secs)
                if now >= say:
                    _logger.warning("%s; waiting for it", error)
                    say = now + _SAY_SECS
                self._stop.wait(_AWAY_SECS)
        self._thread.start()

    def take(self, positions: Mapping[Partition, int]) -> list[News]:
        """Return what was found since the last call; ``positions`` are planned up to there.

        Raises:
            SparkstormError: what no waiting can mend.
        """
        if self._fatal is not None:
            raise self._fatal
        with self._lock:
            self._positions = positions
            news, self._news = self._news, []
        return news

    def commit(self, progress: Mapping[Partition, Stored]) -> None:
        """Store this at the next look; what is newer replaces what still waits."""
        with self._lock:
            self._commits.update(progress)

    def close(self, secs: float = 5.0) -> None:
        """Stop looking, store what still waits, and close the connections."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(secs)
        if self._thread.is_alive():  # in a request; it ends with the process
            _logger.warning("the cluster does not answer: the last progress was not stored there")
            return
        try:
            self._store_commits()
        except SparkstormError as error:
            _logger.warning("progress could not be stored at the end: %s", error)
        self._store.close()
        self._cluster.close()

    def look(self) -> None:
        """Ask the cluster, leave the news, store what is to be committed."""
        now = time.monotonic()
        refresh = self._refreshed is None or now - self._refreshed >= self._refresh_secs
        news = self._refresh() if refresh else News({})
        news = news._replace(ends=self._cluster.ends(self._partitions))
        if refresh:
            self._refreshed = now
        self._leave(news)
        self._ids.update((p, beginning.topic_id) for p, beginning in news.begun.items())
        self._store_commits()

    def _check_patience(
        self, error: SpoutConnectionError, waited: float, patience_secs: float
    ) -> None:
        """Raise an error of the first look if it is not to be waited for any longer."""
        if isinstance(error, RefusedError | _MisfitError):
            raise error
        if isinstance(error, _MissingTopicError) and waited > min(_TOPIC_SECS, patience_secs):
            raise error
        if waited > patience_secs:
            raise SpoutConnectionError(f"{error}. Gave up after {patience_secs:g} s") from error

    def _leave(self, news: News) -> None:
        """Put news with those that were not taken yet, so that they do not become many."""
        with self._lock:
            if self._news and not news.begun and not news.jumps:
                last = self._news[-1]
                there = last.there if news.there is None else news.there
                self._news[-1] = last._replace(ends={**last.ends, **news.ends}, there=there)
            else:
                self._news.append(news)

    def _run(self) -> None:
        while not self._stop.wait(_AWAY_SECS if self._trouble else _LOOK_SECS):
            try:
                self.look()
            except SparkstormError as error:
                if isinstance(error, _MisfitError) or not isinstance(error, SpoutConnectionError):
                    self._fatal = error
                    return
                self._note_trouble(str(error))
            except Exception as error:
                self._fatal = InternalError(f"the watch of a cluster ended: {error!r}")
                raise
            else:
                self._note_trouble("")

    def _note_trouble(self, what: str) -> None:
        if what and not self._trouble:
            _logger.warning("%s; trying again until it answers", what)
        elif self._trouble and not what:
            _logger.warning("the cluster answers again")
        self._trouble = what

    def _refresh(self) -> News:
        """Look which topics and partitions there are, and where they begin."""
        names = self._source.names or tuple(
            name for name in self._cluster.topic_names() if self._source.picks(name)
        )
        found = self._cluster.topics(names)
        missing = [name for name in self._source.names if name not in found]
        if missing and self._refreshed is None:
            raise _MissingTopicError(
                f"there is no topic {missing[0]!r}: create it, or mend its name"
            )
        there = [p for topic in found.values() for p in topic.partitions if self._mine(p)]
        self._topics, self._partitions = found, tuple(there)
        begun = self._begin()
        return News({}, begun, self._passed(begun), frozenset(there))

    def _begin(self) -> dict[Partition, Beginning]:
        """Where to begin with partitions that are new, or not what they were."""
        if not self._partitions:
            return {}
        ids = {p: self._topics[p.topic].id for p in self._partitions}
        new = [p for p in self._partitions if p not in self._ids]
        other = [p for p in self._partitions if self._ids.get(p, ids[p]) != ids[p]]
        begun = self._begin_new(new, ids)
        for partition, offset in self._at("earliest", other).items():
            why = "its topic was deleted and made anew: it is read from its beginning"
            begun[partition] = Beginning(ids[partition], offset, why=why)
        if self._refreshed is None:
            begun.update(self._begin_beyond(ids))
        return begun

    def _begin_new(
        self, new: list[Partition], ids: Mapping[Partition, str]
    ) -> dict[Partition, Beginning]:
        stored = {} if self._source.force_from_start else self._store.load(new)
        # what came into being while we run is read whole, or its first messages would be lost
        start: Start = self._source.start if self._refreshed is None else "earliest"
        fresh = [p for p in new if p not in stored]
        if fresh and start == "committed":
            raise _MisfitError(
                f"there is no progress stored for {fresh[0]}, and start is 'committed': choose "
                f"another start"
            )
        begun = {
            partition: Beginning(ids[partition], offset)
            for partition, offset in self._at(start, fresh).items()
        }
        starts, ends = self._cluster.starts(list(stored)), self._cluster.ends(list(stored))
        for partition, (offset, done, _) in stored.items():
            low, high = starts.get(partition, 0), ends.get(partition, offset)
            if low <= offset <= high:
                begun[partition] = Beginning(ids[partition], offset, done)
            else:
                begun[partition] = self._elsewhere(partition, offset, low, high, ids[partition])
        return begun

    def _begin_beyond(self, ids: Mapping[Partition, str]) -> dict[Partition, Beginning]:
        """Partitions of the checkpoint that ended before the offset that we know."""
        known = [p for p in self._partitions if self._ids.get(p) == ids[p]]
        ends, starts = self._cluster.ends(known), self._cluster.starts(known)
        return {
            partition: self._elsewhere(partition, at, starts.get(partition, 0), end, ids[partition])
            for partition, end in ends.items()
            if (at := self._positions[partition]) > end
        }

    def _elsewhere(
        self, partition: Partition, offset: int, low: int, high: int, topic_id: str
    ) -> Beginning:
        to = self._policy(partition, offset, low, high)
        why = f"the log has no offset {offset}, it goes from {low} to {high}: going on at {to}"
        return Beginning(topic_id, to, why=why, skipped=max(0, to - offset))

    def _passed(self, begun: Mapping[Partition, Beginning]) -> tuple[Jump, ...]:
        """Partitions whose log now begins behind what we would read next."""
        there = set(self._partitions) - set(begun)
        known = {p: offset for p, offset in self._positions.items() if p in there}
        starts = self._cluster.starts(list(known))
        late = {p: low for p, low in starts.items() if low > known[p]}
        ends = self._cluster.ends(list(late))
        return tuple(
            Jump(p, low, self._policy(p, known[p], low, ends.get(p, low)))
            for p, low in late.items()
        )

    def _policy(self, partition: Partition, offset: int, low: int, high: int) -> int:
        """Where to go on, as the user wants it."""
        wanted: OutOfRange = self._source.out_of_range
        if wanted == "fail":
            raise _MisfitError(
                f"{partition} has no offset {offset}, it goes from {low} to {high}, and "
                f"out_of_range is 'fail': choose where to go on"
            )
        if wanted == "earliest":
            return low
        return max(low, self._at(wanted, [partition]).get(partition, high))

    def _at(self, start: Start | OutOfRange, partitions: list[Partition]) -> dict[Partition, int]:
        if start == "earliest":
            return self._cluster.starts(partitions)
        if isinstance(start, str):
            return self._cluster.ends(partitions)
        return self._cluster.at(partitions, millis_of(start))

    def _store_commits(self) -> None:
        with self._lock:
            commits, self._commits = self._commits, {}
        if not commits:
            return
        try:
            dropped = self._store.save(commits, self._topics)
        except SpoutConnectionError:
            with self._lock:
                self._commits = {**commits, **self._commits}
            raise
        if dropped and not self.acks_dropped:
            _logger.warning(
                "%s acks beyond the committed offsets do not fit into what the store takes: "
                "without a checkpoint these messages would be processed again after a restart",
                dropped,
            )
        self.acks_dropped = dropped


class _MissingTopicError(SpoutConnectionError):
    """A topic that was named is not there."""


class _MisfitError(SpoutConnectionError):
    """The world is not as the user said: waiting is of no use."""
