"""The thread that talks to the cluster for one spout task, so that planning never waits for it.

Each look asks where the partitions end, and now and then which there are and where they begin. The
task takes up the news (:meth:`Watch.take`) at its next plan. If the cluster is away, the watch says
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
"""The pause after a look that failed."""
_TOPIC_SECS = 5.0
"""A topic that is missing at the start may be on its way: brokers that start know of none yet."""
_SAY_SECS = 10.0
"""How often waiting for a cluster at the start is mentioned."""

_logger = logger_of("sparkstorm.kafka")


class ClusterView(Offsets, Protocol):
    """A cluster as a watch asks it; see :class:`sparkstorm.kafka.client.desk.KafkaDesk`."""

    def topic_names(self) -> list[str]:
        """The names of all topics."""
        ...

    def topics(self, names: Sequence[str]) -> dict[str, Topic]:
        """Those of these topics that exist."""
        ...

    def cuts(self) -> dict[Partition, int]:
        """Where logs were cut that have another leader since; each cut is told once."""
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
    """Every partition that there is, if it was looked for."""
    cuts: Mapping[Partition, int] = MappingProxyType({})
    """Where logs were cut behind what is planned, and have grown again to their ends."""


@final
class Watch:
    """Looks after the partitions of one spout task.

    Args:
        cluster: whom to ask.
        beginnings: where to begin with partitions.
        source: what is read.
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
        """Up to where each is planned, or will be begun by news that nobody has taken yet."""
        self._ends: dict[Partition, int] = {}
        self._stable = StableOffsets()
        self._fatal: SparkstormError | None = None
        self._trouble = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sparkstorm-kafka", daemon=True)
        self._looked = time.monotonic()

    @property
    def trouble(self) -> str:
        """The reason why the cluster does not answer; empty if it does."""
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
            known: the partitions that the task goes on with from its checkpoint.
            patience_secs: how long to wait for a cluster that does not answer.

        Raises:
            SpoutConnectionError: it did not answer, refused us, or lacks a topic that was named.
            CheckpointError: somebody has reset the stored offsets of such a partition.
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
        """Return what was found since the last call; ``positions`` are planned up to there.

        Raises:
            SparkstormError: what no waiting can mend.
        """
        if self._fatal is not None:
            raise self._fatal
        with self._lock:
            news, self._news = self._news, []
            self._positions = {**positions, **_positions_of(news)}
        return news

    def close(self, secs: float = 5.0, *, in_use: bool = False) -> None:
        """Stop looking, and close the connections, unless others still use them."""
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
        """Add logs that were cut, and have grown again meanwhile."""
        known = self._positions_beside(news.begun)
        cuts = {p: cut for p, cut in self._cluster.cuts().items() if p in known}
        read = {p: cut for p, cut in cuts.items() if cut < known[p]}
        begun = self._beginnings.of_regrown(read, {p: self._topics[p.topic].id for p in read})
        later = {p: cut for p, cut in cuts.items() if p not in read}
        return news._replace(begun={**news.begun, **begun}, cuts=later)

    def _is_shorter(self, ends: Mapping[Partition, int]) -> bool:
        """Whether a log ends before what is known of it."""
        with self._lock:
            known = dict(self._positions)
        return any(end < max(self._ends.get(p, 0), known.get(p, 0)) for p, end in ends.items())

    def _check_patience(
        self, error: SpoutConnectionError, waited: float, patience_secs: float
    ) -> None:
        """Raise an error of the first look if it is not to be waited for any longer."""
        if isinstance(error, RefusedError | InvalidOffsetError):
            raise error
        if isinstance(error, _MissingTopicError) and waited > min(_TOPIC_SECS, patience_secs):
            raise error
        if waited > patience_secs:
            raise SpoutConnectionError(f"{error}. Gave up after {patience_secs:g} s") from error

    def _leave(self, news: News) -> None:
        """Put news with those that were not taken yet, so that they do not become many."""
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
        # a topic that was just made may not say yet where it begins: until then it is not there
        there = [p for p in there if p in begun or self._ids.get(p) == found[p.topic].id]
        self._partitions = tuple(there)
        jumps = self._beginnings.jumps(self._positions_beside(begun))
        return News({}, begun, jumps, frozenset(there))

    def _begin(self) -> dict[Partition, Beginning]:
        """Where to begin with partitions that are new, or not what they were."""
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
        """Up to where the others are planned."""
        with self._lock:
            known = dict(self._positions)
        return {p: known[p] for p in self._partitions if p in known and p not in begun}


def _positions_of(news: Sequence[News]) -> dict[Partition, int]:
    """Where news make a task go on."""
    found: dict[Partition, int] = {}
    for one in news:
        found.update((p, beginning.offset) for p, beginning in one.begun.items())
        found.update((jump.partition, jump.to) for jump in one.jumps)
    return found


class _MissingTopicError(SpoutConnectionError):
    """A topic that was named is not there."""
