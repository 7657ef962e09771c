"""The watch: many pages cost a driver no more than one, and the last state outlives the driver."""

import threading

import pytest
from starlette.testclient import TestClient

from sparkstorm.control.control import Control
from sparkstorm.errors import WorldError
from sparkstorm.testing import ManualClock, wait_until
from sparkstorm.testing.control import FakeControl, FakeRegistry
from sparkstorm.ui import make_app
from sparkstorm.ui.fleet import Fleet
from sparkstorm.ui.watch import Watch


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_a_question_is_asked_once_a_second(shop: FakeControl, clock: ManualClock) -> None:
    """A hundred pages within a second ask the driver once."""
    watch = Watch(shop, clock)
    for _ in range(100):
        watch.situation()
    assert shop.asked["situation"] == 1
    clock.advance(1.01)
    watch.situation()
    assert shop.asked["situation"] == 2


def test_other_arguments_are_another_question(shop: FakeControl, clock: ManualClock) -> None:
    """Filters do not share answers."""
    watch = Watch(shop, clock)
    assert watch.messages(state="retry").total < watch.messages().total
    assert shop.asked["messages"] == 2


class SlowControl:
    """A driver that needs time to list messages."""

    def __init__(self, inner: Control, clock: ManualClock, secs: float) -> None:
        self._inner, self._clock, self._secs = inner, clock, secs

    def __getattr__(self, name: str) -> object:
        self._clock.advance(self._secs)
        return getattr(self._inner, name)


def test_a_slow_driver_is_asked_less_often(shop: FakeControl, clock: ManualClock) -> None:
    """A driver spends a twentieth of its time on a page at most."""
    watch = Watch(SlowControl(shop, clock, secs=0.5), clock)  # type: ignore[arg-type]
    watch.messages()
    clock.advance(5)
    watch.messages()
    assert shop.asked["messages"] == 1
    clock.advance(6)
    watch.messages()
    assert shop.asked["messages"] == 2


class StoppedControl:
    """A driver whose process is stopped for a while."""

    def __init__(self, inner: Control) -> None:
        self._inner = inner
        self.asked = threading.Event()
        self.go = threading.Event()

    def situation(self) -> object:
        self.asked.set()
        self.go.wait()
        return self._inner.situation()


def test_nobody_waits_for_a_driver_whose_last_answer_is_known(
    shop: FakeControl, clock: ManualClock
) -> None:
    """While one thread waits for a stopped driver, all others get the last answer."""
    stopped = StoppedControl(shop)
    stopped.go.set()
    watch = Watch(stopped, clock)  # type: ignore[arg-type]
    known = watch.situation()
    stopped.go.clear()
    stopped.asked.clear()
    clock.advance(2)
    waiting = threading.Thread(target=watch.situation, daemon=True)
    waiting.start()
    wait_until(stopped.asked.is_set)
    assert watch.situation() is known
    stopped.go.set()
    waiting.join()
    assert watch.situation() is not known


def test_the_last_state_stays_when_the_driver_ends(shop: FakeControl, clock: ManualClock) -> None:
    """Known answers stay, unknown ones raise, and the watch says that the driver is gone."""
    watch = Watch(shop, clock)
    known = watch.situation()
    shop.gone = True
    clock.advance(2)
    assert watch.situation() is known
    assert watch.gone
    with pytest.raises(WorldError, match="has ended"):
        watch.window("600")


class ForeignControl:
    """A driver of another version: its answers do not fit the views."""

    def __getattr__(self, name: str) -> object:
        raise ValueError("1 validation error for SituationView")


def test_a_driver_of_another_version_is_told_apart(
    registry: FakeRegistry, clock: ManualClock
) -> None:
    """It is as good as gone, and harms no other topology."""
    foreign: Control = ForeignControl()  # type: ignore[assignment]
    with pytest.raises(WorldError, match="another version"):
        Watch(foreign, clock).situation()
    registry.controls["foreign-1"] = foreign  # type: ignore[assignment]
    client = TestClient(make_app(registry), base_url="http://localhost")
    assert "shop-7f3a" in client.get("/").text
    assert len(client.get("/api/v1/topology/summary").json()["topologies"]) == 2


def test_an_order_makes_all_answers_old(shop: FakeControl, clock: ManualClock) -> None:
    """Whoever gave an order sees what came of it."""
    watch = Watch(shop, clock)
    assert watch.situation().status == "ACTIVE"
    watch.order(lambda control: control.deactivate())
    assert watch.situation().status == "INACTIVE"


def test_answers_are_forgotten_in_the_end(shop: FakeControl, clock: ManualClock) -> None:
    """Whoever asks for ever new names does not fill the memory."""
    watch = Watch(shop, clock)
    for number in range(2000):
        watch.messages(name=f"no such name {number}")
    watch.messages(name="no such name 1999")
    assert shop.asked["messages"] == 2000
    watch.messages(name="no such name 0")
    assert shop.asked["messages"] == 2001


def test_rates_are_those_of_the_last_seconds(clock: ManualClock) -> None:
    """The older of two counts is some fifteen seconds old, whether pages ask often or seldom."""
    watch = Watch(FakeControl("shop", clock=clock), clock)
    assert watch.before() is None
    for _ in range(60):
        now = watch.window(":all-time")
        clock.advance(1.1)
    before = watch.before()
    assert before is not None
    assert 14 < now.secs - before.secs < 18


def test_an_ended_topology_is_shown_until_there_are_many(clock: ManualClock) -> None:
    """The oldest of more than fifty ended topologies are forgotten."""
    registry = FakeRegistry([])
    fleet = Fleet(registry, clock)
    for number in range(80):
        control = FakeControl(f"t{number}", clock=clock)
        registry.controls = {f"t{number}": control}
        clock.advance(1.01)
        assert not fleet.watches()[f"t{number}"].gone
    assert len(fleet.watches()) == 51
    assert fleet.watches()["t78"].gone


def test_a_driver_that_answers_again_is_no_longer_gone(
    shop: FakeControl, registry: FakeRegistry, clock: ManualClock
) -> None:
    """A registry may list a new client of the same driver."""
    fleet = Fleet(registry, clock)
    name = shop.topology().id
    fleet.watches()[name].situation()
    shop.gone = True
    clock.advance(2)
    fleet.watches()[name].situation()
    registry.controls[name] = FakeControl("shop", clock=clock)
    clock.advance(2)
    watch = fleet.watches()[name]
    watch.situation()
    assert not watch.gone


def test_the_keeper_learns_the_state_before_any_page_is_opened(
    shop: FakeControl, registry: FakeRegistry, clock: ManualClock
) -> None:
    """A driver that ends before anybody looked has left its state."""
    fleet = Fleet(registry, clock)
    stop = threading.Event()
    keeper = threading.Thread(target=fleet.keep, args=[stop])
    keeper.start()
    wait_until(lambda: shop.asked["lines"])
    stop.set()
    keeper.join()
    shop.gone = True
    clock.advance(10)
    watch = fleet.watches()[shop.topology_id]
    assert watch.situation().status == "ACTIVE"
    assert watch.letter_groups()
