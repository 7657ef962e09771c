"""One way to run a topology under either runner, so that each test states a behaviour of both."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import pytest

from sparkstorm import Config, Statistics, Topology
from sparkstorm.planning.plan import StreamKey
from sparkstorm.tasks.report import LogLine
from sparkstorm.testing import PATIENCE_SECS, FeederSpout, LocalRunner, ManualClock, wait_until
from tests.behaviour.on_spark import ON_SPARK

_HERE = Path(__file__).parent

_VIRTUAL_SECS = 60
"""For how many seconds of a clock by hand something is waited for."""


class Play(ABC):
    """A running topology and everything that it was seen to do."""

    def __init__(self, topology: Topology, lines: list[LogLine]) -> None:
        self.topology = topology
        self.lines = lines
        self._tapped: list[tuple[StreamKey, int, tuple[Any, ...]]] = []

    def emitted(self, component: str, stream: str = "default") -> list[tuple[Any, ...]]:
        """The values that a component emitted to a stream, by task, in order."""
        wanted = StreamKey(component, stream)
        return [values for key, _, values in self._tapped if key == wanted]

    def by_task(self, component: str) -> dict[int, list[tuple[Any, ...]]]:
        """The values that each task of a component emitted to its default stream."""
        found: dict[int, list[tuple[Any, ...]]] = {}
        for key, task, values in self._tapped:
            if key == StreamKey(component, "default"):
                found.setdefault(task, []).append(values)
        return found

    def texts(self, component: str) -> list[str]:
        """The lines that a component printed, logged or reported."""
        return [line.text for line in self.lines if line.component == component]

    @abstractmethod
    def settle(self) -> Statistics:
        """Wait until all that was fed has gone through and every verdict so far was given."""

    @abstractmethod
    def drain(self) -> Statistics:
        """Wait until the spouts have nothing more and nothing is pending; fail if it is not so."""

    @abstractmethod
    def statistics(self) -> Statistics:
        """How the topology stands."""

    @abstractmethod
    def pass_time(self, until: Callable[[], bool]) -> None:
        """Let time pass until a condition holds; locally it passes a second at a time."""

    @abstractmethod
    def set_active(self, active: bool) -> None:
        """Activate or deactivate the spouts."""

    def _on_tap(self, key: StreamKey, task: int, rows: list[tuple[Any, ...]]) -> None:
        self._tapped += [(key, task, tuple(row)) for row in rows]


class LocalPlay(Play):
    """In this process; its time stands still unless a test advances ``clock``."""

    def __init__(
        self,
        topology: Topology,
        config: Mapping[str, object],
        lines: list[LogLine],
        **options: Any,
    ) -> None:
        super().__init__(topology, lines)
        self.clock = ManualClock()
        self.runner = LocalRunner(
            topology,
            config=Config.parse(config),
            taps=topology.components,
            clock=self.clock,
            on_tap=self._on_tap,
            **options,
        )

    def settle(self) -> Statistics:
        return self.runner.run_until_idle()

    def drain(self) -> Statistics:
        self.settle()
        assert self.runner.coordinator.drained, self.runner.statistics()
        return self.runner.statistics()

    def statistics(self) -> Statistics:
        return self.runner.statistics()

    def pass_time(self, until: Callable[[], bool]) -> None:
        for _ in range(_VIRTUAL_SECS):
            if until():
                return
            self.clock.advance(1.0)
            self.settle()
        raise AssertionError("the condition never came to hold")

    def set_active(self, active: bool) -> None:
        (self.runner.activate if active else self.runner.deactivate)()


class SparkPlay(Play):
    """On the shared session."""

    def __init__(
        self,
        topology: Topology,
        config: Mapping[str, object],
        lines: list[LogLine],
        session: Any,
        **options: Any,
    ) -> None:
        from sparkstorm import submit

        super().__init__(topology, lines)
        components = [spec.component for spec in topology.spouts]
        self._feeders = [spout for spout in components if isinstance(spout, FeederSpout)]
        self.run = submit(
            topology,
            name="play",
            config=Config.parse(config),
            session=session,
            taps=topology.components,
            on_tap=self._on_tap,
            **options,
        )

    def settle(self) -> Statistics:
        wait_until(self._is_quiet, check=self.run._check)
        return self.statistics()

    def drain(self) -> Statistics:
        assert self.run.wait_until_drained(PATIENCE_SECS), self.run.statistics()
        return self.statistics()

    def statistics(self) -> Statistics:
        told: Statistics = self.run.statistics()
        return told

    def pass_time(self, until: Callable[[], bool]) -> None:
        wait_until(until, check=self.run._check)
        wait_until(self._has_told_taps, check=self.run._check)

    def set_active(self, active: bool) -> None:
        (self.run.activate if active else self.run.deactivate)()

    def _has_told_taps(self) -> bool:
        """Whether what was emitted in committed batches was shown: spouts get verdicts before."""
        coordinator = self.run._coordinator
        with coordinator._lock:
            return not coordinator._bookkeeper._taps.waiting

    def _is_quiet(self) -> bool:
        """Whether all that was fed was emitted, put into a batch and seen to its end."""
        if any(feeder._feed.waiting for feeder in self._feeders):
            return False
        coordinator = self.run._coordinator
        with coordinator._lock:
            if (
                coordinator._batches
                or coordinator._bookkeeper._taps.waiting
                or any(t.waiting for t in coordinator.hosted.values())
            ):
                return False
        idle: bool = self.run._spouts.idle
        return idle


Runner = Callable[..., AbstractContextManager[Play]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to `make test-all` what repeats on Spark a kind of behaviour that is shown there."""
    for item in items:
        chosen = (
            ON_SPARK.get(item.path.stem, set()) if item.path.is_relative_to(_HERE) else {item.name}
        )
        if item.get_closest_marker("spark") and item.name not in chosen:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def run_locally(lines: list[LogLine]) -> Runner:
    """Run a topology in this process, as a context manager that gives a :class:`LocalPlay`."""

    @contextmanager
    def run(
        topology: Topology, config: Mapping[str, object] | None = None, **options: Any
    ) -> Iterator[LocalPlay]:
        play = LocalPlay(topology, config or {}, lines, **options)
        with play.runner:
            yield play

    return run


@pytest.fixture
def run_on_spark(request: pytest.FixtureRequest, lines: list[LogLine]) -> Runner:
    """Run a topology on the shared Spark session, in the same way."""
    session = request.getfixturevalue("spark")

    @contextmanager
    def run(
        topology: Topology, config: Mapping[str, object] | None = None, **options: Any
    ) -> Iterator[SparkPlay]:
        play = SparkPlay(topology, config or {}, lines, session, **options)
        try:
            yield play
        finally:
            play.run.stop(drain=False)

    return run


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def run_topology(request: pytest.FixtureRequest) -> Runner:
    """Run a topology under each of the two runners."""
    runner: Runner = request.getfixturevalue(
        "run_locally" if request.param == "local" else "run_on_spark"
    )
    return runner


@pytest.fixture(autouse=True)
def _ship_the_classes_of_this_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Send the bolts that a test module defines to the workers, which cannot import it."""
    module: ModuleType = request.module
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)
