"""The thread that asks the cluster for one spout task, so that planning never waits for Kafka.

Each look asks for the ends of the partitions, and now and then for partitions and beginnings. The
task takes the news (:meth:`Watch.take`) at its next plan. If the cluster is away, the watch says
so once, and goes on trying.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol, final

from sparkstorm.errors import InternalError, SparkstormError, SpoutConnectionError
from sparkstorm.kafka.client.troubles import RefusedError
from sparkstorm.kafka.cluster import Partition, Topic
from sparkstorm.kafka.offsets.beginnings import (
    Beginning,
    Beginnings,
    InvalidOffsetError,
    Jump,
    Known,
    Offsets,
)
from sparkstorm.kafka.offsets.stable import StableOffsets
from sparkstorm.kafka.subscription import Subscription
from sparkstorm.texts.logs import logger_of

__all__ = ["ClusterView", "News", "Watch"]

_LOOK_SECS = 0.1
_AWAY_SECS = 0.5
"""The pause after a failed look."""
_TOPIC_SECS = 5.0
"""How long to wait for a missing topic at the start: starting brokers know no topics yet."""
_SAY_SECS = 10.0
"""How often waiting for a cluster at the start is mentioned."""

_logger = logger_of("sparkstorm.kafka")


class ClusterView(Offsets, Protocol):
    """The cluster of a watch; see :class:`sparkstorm.kafka.client.desk.KafkaDesk`."""

    def topic_names(self) -> list[str]:
        """The names of all topics."""
        ...

    def topics(self, names: Sequence[str]) -> dict[str, Topic]:
        """The existing topics among these."""
        ...

    def cuts(self) -> dict[Partition, int]:
        """Where logs were cut by a change of leader; each cut is told once."""
        ...

    def log_ends(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Where the logs end, records of open transactions included."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class News(NamedTuple):
    """The findings of one look."""

    ends: dict[Partition, int]
    begun: Mapping[Partition, Beginning] = MappingProxyType({})
    jumps: tuple[Jump, ...] = ()
    there: frozenset[Partition] | None = None
    """All partitions, if the look asked for partitions."""
    cuts: Mapping[Partition, int] = MappingProxyType({})
    """Where logs were cut behind what is planned, and have grown again to their ends."""


@final
class Watch:
    """Looks after the partitions of one spout task.

    Args:
        cluster: answers the looks.
        beginnings: where to begin with partitions.
        source: the subscribed topics.
        mine: whether a partition belongs to this task.
        refresh_secs: how often to look for new topics and partitions.
    """

    def __init__(
        self,
        cluster: ClusterView,
        beginnings: Beginnings,
        source: Subscription,
        mine: Callable[[Partition], bool],
        *,
        refresh_secs: float = 5.0,
    ) -> None:
        self._cluster = cluster
        self._beginnings = beginnings
        self._source = source
        self._mine = mine
        self._refresh_secs = refresh_secs
        self._refreshed: float | None = None
        self._topics: dict[str, Topic] = {}
        self._partitions: tuple[Partition, ...] = ()
        self._lock = threading.Lock()
        self._news: list[News] = []
        self._ids: dict[Partition, str] = {}
        self._known: Mapping[Partition, Known] = {}
        self._positions: dict[Partition, int] = {}
        """The planned end of each partition, or its beginning in news not yet taken."""
        self._ends: dict[Partition, int] = {}
        self._stable = StableOffsets()
        self._fatal: SparkstormError | None = None
        self._trouble = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sparkstorm-kafka", daemon=True)
        self._looked = time.monotonic()

    @property
    def trouble(self) -> str:
        """The reason why the cluster does not answer; empty while the cluster answers."""
        return self._trouble

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The topics as they were last described, by name."""
        return self._topics

    @property
    def age_secs(self) -> float:
        """Seconds since the cluster last answered."""
        return time.monotonic() - self._looked

    def start(self, known: Mapping[Partition, Known], patience_secs: float) -> None:
        """Look for the first time, then go on looking on a thread of its own.

        Args:
            known: the partitions in the task's checkpoint.
            patience_secs: how long to wait for a cluster that does not answer.

        Raises:
            SpoutConnectionError: the cluster did not answer, refused, or lacks a named topic.
            CheckpointError: somebody has reset the stored offsets of a known partition.
        """
        self._known = known
        self._ids = {partition: one.topic_id for partition, one in known.items()}
        self._positions = {partition: one.position for partition, one in known.items()}
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
        """Return the findings since the last call; ``positions`` are the planned ends.

        Raises:
            SparkstormError: waiting cannot mend the trouble.
        """
        if self._fatal is not None:
            raise self._fatal
        with self._lock:
            news, self._news = self._news, []
            self._positions = {**positions, **_positions_of(news)}
        return news

    def close(self, secs: float = 5.0, *, in_use: bool = False) -> None:
        """Stop looking, and close the connections unless others use them."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(secs)
        if not (in_use or self._thread.is_alive()):  # a request that hangs ends with the process
            self._cluster.close()

    def look(self) -> None:
        """Ask the cluster, and leave the news."""
        now = time.monotonic()
        due = self._refreshed is None or now - self._refreshed >= self._refresh_secs
        # topics first: only by these a client finds brokers again that it has lost
        news = self._refresh() if due else News({})
        news = news._replace(ends=self._cluster.ends(self._partitions))
        if not due and self._is_shorter(news.ends):
            # a topic that was made anew is no log that was cut
            due, news = True, self._refresh()._replace(ends=self._cluster.ends(self._partitions))
        if due:
            self._refreshed = now
            self._stable.note(news.ends, self._cluster.log_ends(self._partitions))
        news = self._with_cuts(news)
        self._leave(news)
        self._ids.update((p, beginning.topic_id) for p, beginning in news.begun.items())
        self._ends.update(news.ends)
        self._looked = time.monotonic()

    def _with_cuts(self, news: News) -> News:
        """Add logs that were cut, and have grown again."""
        known = self._positions_beside(news.begun)
        cuts = {p: cut for p, cut in self._cluster.cuts().items() if p in known}
        read = {p: cut for p, cut in cuts.items() if cut < known[p]}
        begun = self._beginnings.of_regrown(read, {p: self._topics[p.topic].id for p in read})
        later = {p: cut for p, cut in cuts.items() if p not in read}
        return news._replace(begun={**news.begun, **begun}, cuts=later)

    def _is_shorter(self, ends: Mapping[Partition, int]) -> bool:
        """Whether a log ends before its known end."""
        with self._lock:
            known = dict(self._positions)
        return any(end < max(self._ends.get(p, 0), known.get(p, 0)) for p, end in ends.items())

    def _check_patience(
        self, error: SpoutConnectionError, waited: float, patience_secs: float
    ) -> None:
        """Raise an error of the first look after the patience, or if waiting is of no use."""
        if isinstance(error, RefusedError | InvalidOffsetError):
            raise error
        if isinstance(error, _MissingTopicError) and waited > min(_TOPIC_SECS, patience_secs):
            raise error
        if waited > patience_secs:
            raise SpoutConnectionError(f"{error}. Gave up after {patience_secs:g} s") from error

    def _leave(self, news: News) -> None:
        """Merge news with news not yet taken, so that news do not pile up."""
        with self._lock:
            self._positions.update(_positions_of([news]))
            if self._news and not (news.begun or news.jumps or news.cuts):
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
                if isinstance(error, InvalidOffsetError) or not isinstance(
                    error, SpoutConnectionError
                ):
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
        """Look for topics and partitions, and for their beginnings."""
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
        # a topic that was just made may not say yet where it begins: until then it is not there
        there = [p for p in there if p in begun or self._ids.get(p) == found[p.topic].id]
        self._partitions = tuple(there)
        jumps = self._beginnings.jumps(self._positions_beside(begun))
        return News({}, begun, jumps, frozenset(there))

    def _begin(self) -> dict[Partition, Beginning]:
        """Return where to begin with new and changed partitions."""
        ids = {p: self._topics[p.topic].id for p in self._partitions}
        first = self._refreshed is None
        new = {p: ids[p] for p in self._partitions if p not in self._ids}
        anew = {p: self._ids[p] for p in self._partitions if self._ids.get(p, ids[p]) != ids[p]}
        begun = self._beginnings.of_new(new, first=first)
        begun |= self._beginnings.of_made_anew(anew, ids)
        if first:
            restored = {p: self._known[p] for p in self._partitions if p not in begun}
            begun |= self._beginnings.of_restored(restored, ids)
        return begun | self._beginnings.of_cut(self._positions_beside(begun), ids)

    def _positions_beside(self, begun: Mapping[Partition, Beginning]) -> dict[Partition, int]:
        """The planned ends of other partitions."""
        with self._lock:
            known = dict(self._positions)
        return {p: known[p] for p in self._partitions if p in known and p not in begun}


def _positions_of(news: Sequence[News]) -> dict[Partition, int]:
    """The places where news let a task go on."""
    found: dict[Partition, int] = {}
    for one in news:
        found.update((p, beginning.offset) for p, beginning in one.begun.items())
        found.update((jump.partition, jump.to) for jump in one.jumps)
    return found


class _MissingTopicError(SpoutConnectionError):
    """A named topic does not exist."""
