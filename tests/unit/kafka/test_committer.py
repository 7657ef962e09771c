"""The thread that stores progress: what waits, what is said, and what stops the run."""

import threading
from collections.abc import Mapping

import pytest

from sparkstorm.errors import CheckpointError, InternalError, SpoutConnectionError
from sparkstorm.kafka.cluster import Partition, Topic
from sparkstorm.kafka.offsets.committer import Committer
from sparkstorm.kafka.offsets.stored import CommittedOffset, Saved, Stored
from sparkstorm.testing import wait_until

A, B = Partition("a", 0), Partition("a", 1)


class Store:
    """Progress in memory; it may fail, and it may take its time."""

    def __init__(self) -> None:
        self.kept: dict[Partition, Stored] = {}
        self.fault: Exception | None = None
        self.drops = 0
        self.open = threading.Event()
        self.open.set()
        self.closed = False

    def load(self, ids: Mapping[Partition, str]) -> dict[Partition, Stored]:
        return {p: self.kept[p] for p in ids if p in self.kept}

    def save(self, progress: Mapping[Partition, Stored], topics: Mapping[str, Topic]) -> Saved:
        self.open.wait(30)
        if self.fault is not None:
            raise self.fault
        self.kept.update(progress)
        return Saved(
            {p: CommittedOffset(one.offset, "us") for p, one in progress.items()}, self.drops
        )

    def close(self) -> None:
        self.closed = True


def test_progress_that_could_not_be_stored_waits(caplog: pytest.LogCaptureFixture) -> None:
    """Newer progress replaces it, none is lost, and the log says so once."""
    store = Store()
    committer = Committer(store)
    store.fault = SpoutConnectionError("the store is away")
    committer.put({A: Stored(1), B: Stored(5)}, {})
    wait_until(lambda: bool(committer.trouble))
    committer.put({A: Stored(2)}, {})
    store.fault, store.drops = None, 7
    wait_until(lambda: not committer.trouble)
    assert committer.close()
    assert store.kept == {A: Stored(2), B: Stored(5)}
    assert committer.take() == {A: CommittedOffset(2, "us"), B: CommittedOffset(5, "us")}
    assert committer.take() == {}
    assert committer.acks_dropped == 7
    said = [line.split(":")[0] for line in caplog.messages]
    assert said == [
        "progress is not stored, and the topology goes on meanwhile",
        "7 acks beyond the committed offsets do not fit into what the store takes",
        "progress is stored again",
    ]


def test_the_last_progress_is_stored_at_the_end() -> None:
    """Also if the thread is just storing what came before."""
    store = Store()
    store.open.clear()
    committer = Committer(store)
    committer.put({A: Stored(1)}, {})
    committer.put({A: Stored(2)}, {})
    closing = threading.Thread(target=committer.close)
    closing.start()
    store.open.set()
    closing.join()
    assert (store.kept[A], store.closed) == (Stored(2), True)


def test_a_store_that_hangs_does_not_hang_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """Its connections stay open for the request that hangs."""
    store = Store()
    store.open.clear()
    committer = Committer(store)
    committer.put({A: Stored(1)}, {})
    assert not committer.close(secs=0.01)
    assert not store.closed
    assert "the last progress is not stored" in caplog.text
    store.open.set()


def test_another_program_that_commits_reaches_the_task() -> None:
    """No waiting mends that."""
    store = Store()
    store.fault = CheckpointError("another program has committed")
    committer = Committer(store)
    committer.put({A: Stored(1)}, {})
    wait_until(lambda: not committer._thread.is_alive())
    with pytest.raises(CheckpointError):
        committer.take()
    assert committer.close()


def test_an_error_of_ours_reaches_the_task() -> None:
    """The thread must not end without a word."""
    store = Store()
    store.fault = KeyError("bug")
    committer = Committer(store)
    committer._waiting[A] = Stored(1)
    committer._work.set()
    with pytest.raises(KeyError):
        committer._run()
    with pytest.raises(InternalError, match="storing progress ended"):
        committer.take()
