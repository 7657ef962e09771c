"""The suite that every queue spout passes, on its real server.

A subclass of :class:`QueueConformance` is a test class for pytest. It implements ``bench``, which
returns a fresh queue on a server as a :class:`QueueBench`::

    class TestMyQueue(QueueConformance):
        @contextmanager
        def bench(self):
            with MyServer() as server:
                yield MyBench(server)

The suite asks only for what the bench promises: a server that loses its messages at a restart says
``durable = False``. ``away_secs`` says how long the server stays away.
"""

import os
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Sequence
from contextlib import AbstractContextManager

import cloudpickle

from sparkstorm.queues.spout import QueueSpout
from sparkstorm.testing.queues.play import SpoutPlay
from sparkstorm.testing.servers.guardian import guarded
from sparkstorm.testing.waiting import wait_until

__all__ = ["QueueBench", "QueueConformance", "hold_and_die"]

_COUNT_SECS = 0.2
"""The pause between two questions for a server's counts, which may be costly."""

_REST_SECS = 0.01
"""The pause of a spout's task that finds nothing to do."""


class QueueBench(ABC):
    """An empty queue on a server, from the side of those who fill and watch it.

    Attributes:
        lease_secs: how long a lease of :meth:`spout` lasts; None: as long as its connection. Keep
            it short: tests wait for three times as long.
        durable: whether messages survive :meth:`stop` and :meth:`start`.
        restarts: whether the queue can be consumed after :meth:`stop` and :meth:`start`.
    """

    lease_secs: float | None = None
    durable: bool = True
    restarts: bool = True

    @abstractmethod
    def spout(self, *, decode: str = "string", max_pending: int | None = None) -> QueueSpout:
        """Return a spout of the queue."""

    @abstractmethod
    def send(self, bodies: Sequence[bytes]) -> None:
        """Put messages into the queue."""

    @abstractmethod
    def counts(self) -> tuple[int, int]:
        """Ask the server's own tools how many messages are ready, and how many pending."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the server."""

    @abstractmethod
    def start(self) -> None:
        """Start the server again."""

    def freeze(self) -> None:
        """Let the server fall silent, with its connections open (SIGSTOP)."""
        raise NotImplementedError

    def thaw(self) -> None:
        """Let a frozen server go on."""
        raise NotImplementedError

    freezes: bool = True
    """Whether :meth:`freeze` is there."""

    def consumer_dies(self, count: int) -> None:
        """Let another process take messages, and kill it with ``kill -9``."""
        hold_and_die(self.spout(), count)


class QueueConformance(ABC):
    """The tests; subclass it under a name that begins with ``Test``."""

    away_secs: float = 60.0
    """How long a server stays away before it is started again.

    Time-outs of up to a minute show only in so long a time.
    """

    @abstractmethod
    def bench(self) -> AbstractContextManager[QueueBench]:
        """Return an empty queue, for one test."""

    def test_an_emitted_message_is_pending_and_an_acked_one_is_gone(self) -> None:
        """The server holds a message from its emit to its ack."""
        with self.bench() as bench, SpoutPlay(bench.spout()) as play:
            bench.send(_numbered(5))
            taken = play.take(5)
            _await_counts(bench, 0, 5)
            play.ack(*taken[:3])
            _await_counts(bench, 0, 2)
            play.ack(*taken[3:])
            _await_counts(bench, 0, 0)
            assert set(play.emits.values()) == {1}

    def test_bodies_arrive_as_they_were_sent(self) -> None:
        """Every text arrives whole: an empty line, other scripts, a long one."""
        sent = ["a", "two\r\nlines", "ключ ✓", "x" * 100_000]
        with self.bench() as bench, SpoutPlay(bench.spout()) as play:
            bench.send([text.encode() for text in sent])
            play.take(len(sent))
            assert sorted(play.bodies()) == sorted(sent)

    def test_a_failed_message_is_emitted_again_and_stays_pending(self) -> None:
        """Our own policy retries: the server sees one delivery."""
        with self.bench() as bench, SpoutPlay(bench.spout()) as play:
            bench.send([b"a"])
            for attempt in range(1, 6):
                (msg_id,) = play.take(1)
                assert play.emits[msg_id] == attempt
                play.fail(msg_id)
                assert sum(bench.counts()) == 1
            play.ack(*play.take(1))
            _await_counts(bench, 0, 0)

    def test_a_message_that_is_given_up_becomes_a_dead_letter_and_is_deleted(self) -> None:
        """A message that always fails does not come back for ever."""
        with self.bench() as bench, SpoutPlay(bench.spout(), max_retries=0) as play:
            bench.send([b"a"])
            (msg_id,) = play.take(1)
            play.fail(msg_id)
            assert [letter[0] for letter in play.given_up] == [msg_id]
            _await_counts(bench, 0, 0)

    def test_a_message_that_cannot_be_decoded_becomes_a_dead_letter_with_its_bytes(self) -> None:
        """One broken message holds back no other."""
        with self.bench() as bench, SpoutPlay(bench.spout(decode="json")) as play:
            bench.send([b"{broken", b"7"])
            play.ack(*play.take(1))
            wait_until(lambda: play.given_up, check=play.pump)
            ((_, failure, source),) = play.given_up
            assert source is not None
            assert source["bytes"] == b"{broken"
            assert "cannot be decoded" in failure.message
            _await_counts(bench, 0, 0)

    def test_messages_under_way_go_back_at_a_shutdown(self) -> None:
        """The next consumer need not wait for the end of a lease."""
        with self.bench() as bench:
            with SpoutPlay(bench.spout()) as play:
                bench.send(_numbered(3))
                play.ack(play.take(3)[0])
            _await_counts(bench, 2, 0)
            with SpoutPlay(bench.spout()) as following:
                following.ack(*following.take(2))
                _await_counts(bench, 0, 0)

    def test_messages_of_a_killed_process_come_back(self) -> None:
        """A consumer dies by ``kill -9``; another gets its messages."""
        with self.bench() as bench:
            bench.send(_numbered(3))
            bench.consumer_dies(3)
            with SpoutPlay(bench.spout()) as play:
                play.ack(*play.take(3))
                _await_counts(bench, 0, 0)

    def test_work_of_three_times_the_lease_runs_once(self) -> None:
        """While the first copy lives no consumer gets a second."""
        with self.bench() as bench, SpoutPlay(bench.spout()) as play:
            bench.send([b"a"])
            (msg_id,) = play.take(1)
            with SpoutPlay(bench.spout(), task_index=1) as other:
                end = time.monotonic() + 3 * (bench.lease_secs or 0.3)
                wait_until(lambda: time.monotonic() > end, check=lambda: _pump(play, other))
                assert not other.emits
            assert play.emits == {msg_id: 1}
            play.ack(msg_id)
            _await_counts(bench, 0, 0)

    def test_no_more_than_max_pending_messages_are_held(self) -> None:
        """Messages beyond the limit stay ready for others."""
        with self.bench() as bench, SpoutPlay(bench.spout(max_pending=4)) as play:
            bench.send(_numbered(10))
            done = 0
            while done < 10:
                taken = play.take(min(4, 10 - done))
                play.pump(20)
                assert len(play.under_way) <= 4
                assert bench.counts()[1] <= 4
                play.ack(taken[0])
                done += 1
            _await_counts(bench, 0, 0)

    def test_two_tasks_share_a_queue(self) -> None:
        """Each message goes to one task, and that task gets its end."""
        with (
            self.bench() as bench,
            SpoutPlay(bench.spout(max_pending=5)) as one,
            SpoutPlay(bench.spout(max_pending=5), task_index=1) as two,
        ):
            bench.send(_numbered(40))
            done: list[str] = []
            while len(done) < 40:
                _pump(one, two)
                for play in (one, two):
                    done += play.bodies()
                    play.ack(*list(play.under_way))
            assert sorted(done) == sorted(body.decode() for body in _numbered(40))
            _await_counts(bench, 0, 0)

    def test_consuming_goes_on_after_the_server_was_away(self) -> None:
        """The spout says that the server is away, and that it is back; nothing is lost."""
        with self.bench() as bench, SpoutPlay(bench.spout()) as play:
            if not bench.restarts:
                return
            bench.send(_numbered(3))
            taken = play.take(3)
            bench.stop()
            back_at = time.monotonic() + self.away_secs
            wait_until(lambda: _said(play, "is away"), check=play.pump)
            while time.monotonic() < back_at:
                play.pump()
                time.sleep(_REST_SECS)
            bench.start()
            wait_until(lambda: _said(play, "is back"), check=play.pump)
            play.ack(*taken)
            if not bench.durable:
                bench.send([b"more"])
                play.ack(*play.take(1))
            _await_counts(bench, 0, 0)
            if bench.durable:
                assert set(play.emits.values()) == {1}

    def test_a_silent_server_is_noticed(self) -> None:
        """A connection that is open and carries nothing is given up, and made anew."""
        with self.bench() as bench, SpoutPlay(bench.spout()) as play:
            if not bench.freezes:
                return
            bench.send([b"a"])
            play.ack(*play.take(1))
            bench.freeze()
            try:
                wait_until(lambda: _said(play, "is away"), check=play.pump)
            finally:
                bench.thaw()
            wait_until(lambda: _said(play, "is back"), check=play.pump)
            bench.send([b"b"])
            wait_until(lambda: "b" in play.bodies(), check=play.pump)
            play.ack(*list(play.under_way))
            wait_until(lambda: bench.counts() == (0, 0), check=lambda: _ack_all(play))

    def test_nothing_is_lost_over_a_restart_of_the_server(self) -> None:
        """Messages that were ready, under way or acked at the restart each end once at least."""
        with self.bench() as bench, SpoutPlay(bench.spout(max_pending=5)) as play:
            if not (bench.durable and bench.restarts):
                return
            bench.send(_numbered(20))
            done: list[str] = []
            play.take(5)
            bench.stop()
            done += play.bodies()
            play.ack(*list(play.under_way))
            bench.start()
            while len(set(done)) < 20:
                play.take(1)
                done += play.bodies()
                play.ack(*list(play.under_way))
            wait_until(lambda: bench.counts() == (0, 0), check=lambda: _ack_all(play))


def hold_and_die(spout: QueueSpout, count: int) -> None:
    """Start a process that takes messages by a spout; kill it once it holds them."""
    shipped = b64encode(cloudpickle.dumps(spout)).decode()
    child = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-c", _HOLDER, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **guarded()},
    )
    assert child.stdin is not None
    assert child.stdout is not None
    with child.stdin, child.stdout:
        child.stdin.write(shipped + "\n")
        child.stdin.flush()
        held = child.stdout.readline()
        child.kill()
        child.wait()
    if held.strip() != "holding":
        raise AssertionError(f"the process took no {count} messages")


_HOLDER = """
import base64, sys, time, cloudpickle
from sparkstorm.testing.queues.play import SpoutPlay
play = SpoutPlay(cloudpickle.loads(base64.b64decode(sys.stdin.readline())), task_index=1)
play.__enter__()
play.take(int(sys.argv[1]))
print("holding", flush=True)
time.sleep(600)
"""


def _numbered(count: int) -> list[bytes]:
    return [f"message {number}".encode() for number in range(count)]


def _pump(*plays: SpoutPlay) -> None:
    for play in plays:
        play.pump(10)


def _ack_all(play: SpoutPlay) -> None:
    play.pump(10)
    play.ack(*list(play.under_way))


def _said(play: SpoutPlay, words: str) -> bool:
    return any(words in text for text in play.errors)


def _await_counts(bench: QueueBench, ready: int, pending: int) -> None:
    seen = (-1, -1)

    def look() -> bool:
        nonlocal seen
        seen = bench.counts()
        if seen != (ready, pending):
            time.sleep(_COUNT_SECS)
        return seen == (ready, pending)

    try:
        wait_until(look)
    except TimeoutError as error:
        raise AssertionError(f"(ready, pending) is {seen}, not {(ready, pending)}") from error
