"""The thread that stores progress, so that the topology goes on while the store is away."""

import threading
from collections.abc import Mapping
from typing import final

from sparkstorm.errors import InternalError, SparkstormError, SpoutConnectionError
from sparkstorm.kafka.cluster import Partition, Topic
from sparkstorm.kafka.offsets.stored import CommittedOffset, ProgressStore, Stored
from sparkstorm.texts.logs import logger_of

__all__ = ["Committer"]

_AWAY_SECS = 0.5
"""The pause after a store has not answered."""

_logger = logger_of("sparkstorm.kafka")


@final
class Committer:
    """Stores the progress of one spout task. Only :meth:`load` and :meth:`close` may block.

    Args:
        store: where.
    """

    def __init__(self, store: ProgressStore) -> None:
        self._store = store
        self._using = threading.Lock()
        """Held during calls of the store: the watch's thread loads from the store, too."""
        self._lock = threading.Lock()
        self._waiting: dict[Partition, Stored] = {}
        self._topics: Mapping[str, Topic] = {}
        self._held: dict[Partition, CommittedOffset] = {}
        self._fatal: SparkstormError | None = None
        self._trouble = ""
        self._work = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sparkstorm-progress", daemon=True)
        self.acks_dropped = 0

    @property
    def trouble(self) -> str:
        """The reason why progress is not stored at the moment; empty without trouble."""
        return self._trouble

    def load(self, ids: Mapping[Partition, str]) -> dict[Partition, Stored]:
        """Return the stored progress of partitions, each given with its topic's id.

        Raises:
            SpoutConnectionError: the store does not answer.
        """
        with self._using:
            return self._store.load(ids) if ids else {}

    def put(self, progress: Mapping[Partition, Stored], topics: Mapping[str, Topic]) -> None:
        """Store progress soon; newer progress of a partition replaces waiting progress."""
        if not progress:
            return
        with self._lock:
            self._waiting.update(progress)
            self._topics = topics
        if not self._thread.ident:
            self._thread.start()
        self._work.set()

    def take(self) -> dict[Partition, CommittedOffset]:
        """Return the progress stored since the last call.

        Raises:
            SparkstormError: waiting cannot mend the trouble.
        """
        if self._fatal is not None:
            raise self._fatal
        with self._lock:
            held, self._held = self._held, {}
        return held

    def close(self, secs: float = 10.0) -> bool:
        """Store waiting progress, and close the store; return whether the thread has ended."""
        self._stop.set()
        self._work.set()
        if self._thread.ident:
            self._thread.join(secs)
        if self._thread.is_alive():  # in a request; it ends with the process
            _logger.warning("the last progress is not stored: the store does not answer")
            return False
        self._store.close()
        return True

    def store(self) -> None:
        """Store waiting progress, once.

        Raises:
            SpoutConnectionError: the store does not answer; nothing is lost.
        """
        with self._lock:
            progress, self._waiting, topics = self._waiting, {}, self._topics
        if not progress:
            return
        try:
            with self._using:
                saved = self._store.save(progress, topics)
        except SpoutConnectionError:
            with self._lock:
                self._waiting = {**progress, **self._waiting}
            raise
        with self._lock:
            self._held.update(saved.held)
        if saved.dropped and not self.acks_dropped:
            _logger.warning(
                "%s acks beyond the committed offsets do not fit into what the store takes: "
                "without a checkpoint these messages would be processed again after a restart",
                saved.dropped,
            )
        self.acks_dropped = saved.dropped

    def __repr__(self) -> str:
        return f"Committer({len(self._waiting)} partitions wait, trouble={self._trouble!r})"

    def _run(self) -> None:
        last = False
        while not last:
            self._work.wait()
            self._work.clear()
            last = self._stop.is_set()  # asked before the store, which takes all that was put
            try:
                self._store_now()
            except SparkstormError as error:
                self._fatal = error
                _logger.warning("progress is stored no longer: %s", error)
                return
            except Exception as error:
                self._fatal = InternalError(f"storing progress ended: {error!r}")
                raise

    def _store_now(self) -> None:
        try:
            self.store()
        except SpoutConnectionError as error:
            if not self._trouble:
                _logger.warning(
                    "progress is not stored, and the topology goes on meanwhile: %s", error
                )
            self._trouble = str(error)
            self._stop.wait(_AWAY_SECS)
            self._work.set()
        else:
            if self._trouble:
                _logger.warning("progress is stored again")
            self._trouble = ""
