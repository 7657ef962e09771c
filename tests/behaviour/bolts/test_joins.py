"""JoinBolt: matched tuples come out once, unmatched ones time out or are emitted alone."""

import random
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparkstorm as ss
from sparkstorm.bolts import JoinBolt
from sparkstorm.errors import ComponentError, TopologyError
from sparkstorm.spouts import IteratorSpout
from sparkstorm.state.image import StateImage
from sparkstorm.tasks.worker import Worker
from sparkstorm.testing import PATIENCE_SECS, FeederSpout, LocalRunner, ManualClock, RequeueSpout

PATIENT = {"message_timeout_secs": 600}


def inner() -> JoinBolt:
    return JoinBolt("orders", "id").join("payments", "order").select("id, amount, payments:by")


def left(wait: float = 5.0) -> JoinBolt:
    """Orders and payments, and a voucher if there is one."""
    return (
        JoinBolt("orders", "id")
        .join("payments", "order")
        .left_join("vouchers", "order", wait_secs=wait)
        .select("id, amount, by, vouchers:code as voucher")
    )


def wired(bolt: JoinBolt, *more: str) -> tuple[dict[str, FeederSpout], ss.Topology]:
    """Feeders by name, and the bolt behind them."""
    feeders = {
        "orders": FeederSpout("id long, amount long"),
        "payments": FeederSpout("order long, by string"),
        "vouchers": FeederSpout("order long, code string"),
    }
    builder = ss.TopologyBuilder()
    declared = builder.set_bolt("join", bolt, parallelism=2)
    for name in ("orders", "payments", *more):
        builder.set_spout(name, feeders[name])
        declared.fields_grouping(name, ["id" if name == "orders" else "order"])
    return feeders, builder.create_topology()


def held(runner: LocalRunner) -> int:
    """How many tuples the committed state holds, whatever the bags' names."""
    count = 0
    for store in runner._jobs.stores().values():
        image = StateImage()
        image.load(store)
        count += sum(len(image.tuples(f"__join/{n}")) for n in ("orders", "payments", "vouchers"))
    return count


def test_a_pair_is_emitted_and_acked_once(run_topology: Any) -> None:
    """Whichever side comes first, in one batch or in several."""
    feeders, topology = wired(inner())
    with run_topology(topology, PATIENT) as play:
        feeders["orders"].feed([1, 100], msg_id="o1")
        feeders["payments"].feed([2, "bea"], msg_id="p2")
        feeders["payments"].feed([1, "ann"], msg_id="p1")
        play.settle()
        play.settle()
        assert play.emitted("join") == [(1, 100, "ann")]
        assert (feeders["orders"].acked, feeders["payments"].acked) == (["o1"], ["p1"])
        feeders["orders"].feed([2, 200], msg_id="o2")
        play.settle()
        assert play.emitted("join")[1:] == [(2, 200, "bea")]
        statistics = play.statistics()
        assert (statistics.acked, statistics.failed, statistics.pending) == (4, 0, 0)


def test_what_may_be_missing_is_waited_for(run_topology: Any) -> None:
    """With it, without it, and in time, while nothing else comes."""
    feeders, topology = wired(left(wait=1.0), "vouchers")
    with run_topology(topology, PATIENT) as play:
        feeders["vouchers"].feed([1, "x"], msg_id="v1")
        for number in (1, 2):
            feeders["orders"].feed([number, 100], msg_id=f"o{number}")
            feeders["payments"].feed([number, "ann"], msg_id=f"p{number}")
        play.pass_time(lambda: len(feeders["orders"].acked) == 2)
        play.pass_time(lambda: play.statistics().pending == 0)  # each spout has its own thread
        assert sorted(play.emitted("join"), key=str) == [
            (1, 100, "ann", "x"),
            (2, 100, "ann", None),
        ]


def test_waiting_begins_with_the_first_stream(run_locally: Any) -> None:
    """What is waited for counts from the order; what must come is waited for until the time-out."""
    feeders, topology = wired(left(wait=5.0), "vouchers")
    with run_locally(topology, {"message_timeout_secs": 30}) as play:
        feeders["orders"].feed([1, 100], msg_id="o1")
        play.settle()
        play.clock.advance(4)
        feeders["payments"].feed([1, "ann"], msg_id="p1")
        play.settle()
        assert play.emitted("join") == []
        play.clock.advance(1)
        play.settle()
        assert play.emitted("join") == [(1, 100, "ann", None)]
        feeders["orders"].feed([2, 200], msg_id="o2")
        play.settle()
        play.clock.advance(40)
        play.settle()
        assert (feeders["orders"].failed, play.statistics().failures) == (["o2"], {"timeout": 1})


def test_the_oldest_of_each_stream_belong_together(run_locally: Any) -> None:
    """A key that comes several times makes as many results as the stream with the fewest."""
    feeders, topology = wired(inner())
    with run_locally(topology) as play:
        for amount in (1, 2, 3):
            feeders["orders"].feed([7, amount], msg_id=amount)
        play.settle()
        for by in "ab":
            feeders["payments"].feed([7, by], msg_id=by)
        play.settle()
        assert play.emitted("join") == [(7, 1, "a"), (7, 2, "b")]
        assert feeders["orders"].acked == [1, 2]


def test_none_matches_nothing(run_locally: Any) -> None:
    """A tuple without a key fails at once, with the reason."""
    feeders, topology = wired(inner())
    with run_locally(topology) as play:
        feeders["orders"].feed([None, 1], msg_id=1)
        feeders["payments"].feed([None, "a"], msg_id="a")
        play.settle()
        assert (feeders["orders"].failed, feeders["payments"].failed) == ([1], ["a"])
        assert "can match nothing" in feeders["orders"].failures[0].message


def test_an_unknown_field_fails_what_would_have_matched(run_locally: Any) -> None:
    """It shows with the first result; the tuple that waited is still there."""
    feeders, topology = wired(JoinBolt("orders", "id").join("payments", "order").select("id, when"))
    with run_locally(topology) as play:
        feeders["orders"].feed([1, 1], msg_id=1)
        feeders["payments"].feed([1, "a"], msg_id="a")
        play.settle()
        [failure] = feeders["payments"].failures
        assert "'when': no joined stream has such a field" in failure.message
        assert play.statistics().pending == 1


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        pytest.param(lambda: JoinBolt("orders", "id"), "needs join or left_join", id="alone"),
        pytest.param(
            lambda: JoinBolt("orders", "id").join("payments", "order"), "and select", id="mute"
        ),
        pytest.param(
            lambda: JoinBolt("orders", "id").join("payments", "order").select("users:id"),
            "select says 'users:id', but the joined streams are orders, payments",
            id="unknown source",
        ),
        pytest.param(
            lambda: JoinBolt("orders", "id").join("payments", "order").select("id a"),
            "select says 'id a': write field",
            id="no field",
        ),
        pytest.param(
            lambda: JoinBolt("orders", "id").join("payments", "order").select("id, by as id"),
            "declares the field 'id' twice",
            id="names twice",
        ),
        pytest.param(
            lambda: JoinBolt("orders", "id, amount").join("payments", "order"),
            "the key of 'payments' has 1 fields, that of 'orders' has 2",
            id="other keys",
        ),
        pytest.param(
            lambda: JoinBolt("orders", "id").join("orders/default", "id"),
            "'orders/default' is joined twice",
            id="twice",
        ),
        pytest.param(
            lambda: JoinBolt("orders", "id").left_join("payments", "order", wait_secs=0),
            "wait_secs is 0: it is above 0",
            id="no time",
        ),
    ],
)
def test_a_join_that_is_none_is_refused(make: Any, fault: str) -> None:
    """Where it is made, or when the topology is built."""
    with pytest.raises(TopologyError, match=fault):
        wired(make())


def test_a_join_that_does_not_fit_its_topology_is_refused(run_locally: Any) -> None:
    """It joins what it subscribes to, and waits no longer than tuples live."""
    with pytest.raises(TopologyError, match=r"subscriptions differ.*vouchers/default"):
        wired(left())
    for bolt, config, fault in (
        (inner(), {}, None),
        (left(wait=30), {"message_timeout_secs": 30}, "waits 30 s for missing tuples"),
    ):
        streams = ("vouchers",) if fault else ()
        feeders, topology = wired(bolt, *streams)
        with run_locally(topology, config) as play:
            feeders["orders"].feed([1, 1], msg_id=1)
            if fault is None:
                play.settle()
            else:
                with pytest.raises(ComponentError, match=fault):
                    play.settle()


sides = st.sampled_from(["orders", "payments", "vouchers"])
histories = st.lists(
    st.tuples(
        st.lists(st.tuples(sides, st.integers(0, 1)), max_size=5),
        st.sampled_from([0, 3, 3, 6, 30]),
        st.booleans(),
    ),
    max_size=10,
)
"""What comes in a batch, how long nothing does before it, and whether its process is a new one."""


class NaiveJoin:
    """The same join on plain lists; times are whole seconds."""

    def __init__(self, wait: int, timeout: int) -> None:
        self.wait, self.timeout = wait, timeout
        self.waiting: dict[str, list[tuple[int, int, int]]] = {s: [] for s in ("o", "p", "v")}
        self.results: list[tuple[int, ...]] = []
        self.failed: set[int] = set()

    def take(self, side: str, key: int, number: int, now: int) -> None:
        """One tuple comes."""
        self.waiting[side].append((key, number, now))
        found = {s: self._oldest(s, key) for s in self.waiting}
        if all(found.values()):
            self._match(found)

    def end_batch(self, now: int) -> None:
        """What waited long enough goes without a voucher."""
        for one in list(self.waiting["o"]):
            key, _, since = one
            found = {"o": one, "p": self._oldest("p", key), "v": self._oldest("v", key)}
            if now - since >= self.wait and found["p"]:
                self._match(found)

    def expire(self, now: int) -> None:
        """What waited too long fails."""
        for side, ones in self.waiting.items():
            self.failed |= {n for _, n, since in ones if now - since > self.timeout}
            self.waiting[side] = [one for one in ones if now - one[2] <= self.timeout]

    def _oldest(self, side: str, key: int) -> tuple[int, int, int] | None:
        return next((one for one in self.waiting[side] if one[0] == key), None)

    def _match(self, found: dict[str, tuple[int, int, int] | None]) -> None:
        self.results.append(tuple(one[1] if one else -1 for one in found.values()))
        for side, one in found.items():
            if one:
                self.waiting[side].remove(one)


@given(histories)
def test_joins_are_those_of_a_naive_join(history: list[Any]) -> None:
    """Whatever comes when, with images lost in between: same results, acks and failures."""
    timeout, wait = 19, 6  # seconds; pauses are multiples of 3, so no age is on the edge
    feeders = {side: FeederSpout("key long, n long") for side in ("orders", "payments", "vouchers")}
    bolt = (
        JoinBolt("orders", "key")
        .join("payments", "key")
        .left_join("vouchers", "key", wait_secs=wait)
        .select("orders:n as o, payments:n as p, vouchers:n as v")
    )
    builder = ss.TopologyBuilder()
    declared = builder.set_bolt("join", bolt, parallelism=2)
    for side, feeder in feeders.items():
        builder.set_spout(side, feeder)
        declared.fields_grouping(side, ["key"])
    results: list[tuple[int, ...]] = []

    def take(key: Any, task: int, rows: list[tuple[Any, ...]]) -> None:
        results.extend(tuple(-1 if n is None else n for n in row) for row in rows)

    clock, config = ManualClock(), ss.Config(message_timeout_secs=timeout)
    naive, now, number = NaiveJoin(wait, timeout), 0, 0
    topology = builder.create_topology()
    with LocalRunner(topology, config=config, clock=clock, taps=["join"], on_tap=take) as runner:
        for batch, pause, moved in history:
            clock.advance(pause)
            now += pause
            naive.expire(now)
            fed: dict[str, list[tuple[int, int]]] = {side: [] for side in feeders}
            for side, key in batch:
                feeders[side].feed([key, number], msg_id=number)
                fed[side].append((key, number))
                number += 1
            if moved:  # the image is gone: what the batch sees comes from the store
                cast("Any", runner._jobs)._worker = Worker(runner.plan)
            runner.run_until_idle()
            for side, mine in fed.items():  # the spouts are read one after the other
                for key, one in mine:
                    naive.take(side[0], key, one, now)
            naive.end_batch(now)
            assert held(runner) <= runner.statistics().pending
        assert sorted(results) == sorted(naive.results)
        acked = {n for feeder in feeders.values() for n in feeder.acked}
        failed = {n for feeder in feeders.values() for n in feeder.failed}
        assert acked == {n for result in naive.results for n in result if n >= 0}
        assert failed == naive.failed
        assert held(runner) == sum(map(len, naive.waiting.values()))


class Sides:
    """Two streams of so many keys, of which one in twenty has no payment.

    Their order is random within some thousand keys: how long a pair waits for its other half must
    not grow with their number, or a slow machine would let it time out.
    """

    def __init__(self, keys: int) -> None:
        chance = random.Random(keys)
        self.lonely = set(chance.sample(range(keys), keys // 20))
        self.orders: list[list[Any]] = [[key, key * 2] for key in range(keys)]
        self.payments: list[list[Any]] = [
            [key, f"p{key}"] for key in range(keys) if key not in self.lonely
        ]
        self.joined = [(key, key * 2, by) for key, by in self.payments]
        for rows in (self.orders, self.payments):
            rows.sort(key=lambda row: row[0] + chance.uniform(0, 2_000))

    def topology(self, spout: Any) -> ss.Topology:
        """Both streams and their join."""
        builder = ss.TopologyBuilder()
        builder.set_spout("orders", spout(self.orders, "id long, amount long"))
        builder.set_spout("payments", spout(self.payments, "order long, by string"))
        declared = builder.set_bolt("join", inner(), parallelism=2)
        declared.fields_grouping("orders", ["id"]).fields_grouping("payments", ["order"])
        return builder.create_topology()

    def check(self, joined: list[Any], statistics: ss.Statistics) -> None:
        """Each pair came out once; the others timed out and are dead letters."""
        assert sorted(joined) == self.joined
        assert statistics.acked == 2 * len(self.payments)
        assert statistics.failures == {"timeout": len(self.lonely)}
        assert statistics.given_up == statistics.dead_letters == len(self.lonely)
        assert statistics.pending == 0


@pytest.mark.parametrize("keys", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_two_streams_of_which_some_never_match(run_locally: Any, keys: int) -> None:
    """Each pair once; the others fail by time-out and become dead letters; nothing stays."""
    sides = Sides(keys)
    config = {"max_retries": 0, "message_timeout_secs": 30}
    with run_locally(sides.topology(RequeueSpout), config) as play:
        play.settle()
        play.clock.advance(40)
        sides.check(play.emitted("join"), play.settle())
        assert play.runner.coordinator.ledger_bytes == 0
        assert held(play.runner) == 0


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("keys", [100_000])
def test_the_same_on_spark(run_on_spark: Any, tmp_path: Path, keys: int) -> None:
    """The time-out is real here: the run lasts as long, and then ends by itself."""
    sides = Sides(keys)
    config = {
        "max_retries": 0,
        "message_timeout_secs": 180,
        "dead_letter_folder": str(tmp_path),
    }
    with run_on_spark(sides.topology(IteratorSpout), config) as play:
        assert play.run.wait_until_drained(3 * PATIENCE_SECS)
        sides.check(play.emitted("join"), play.statistics())
        assert play.run._coordinator.ledger_bytes == 0
