"""What all tests share: Hypothesis profiles, whether this is CI, and what of us is compiled."""

import logging
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from tests.tools.plain import SRC, load_plain_python

if TYPE_CHECKING:  # tests without Spark do not load it
    from pyspark.sql import SparkSession

    from sparkstorm.tasks.report import LogLine
    from sparkstorm.testing.servers import ServerProcess

    Server = TypeVar("Server", bound=ServerProcess)

pytest_plugins = ["tests.tools.time_limits"]

# Topologies of tests are not among the user's own.
_REGISTRY = tempfile.TemporaryDirectory(prefix="sparkstorm-registry-")
os.environ["SPARKSTORM_REGISTRY"] = _REGISTRY.name

IN_CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")


# --- compiled modules (hatch_build.py) ---------------------------------------------------------


def _newer_than_compiled() -> list[str]:
    """The sources that were changed since they were compiled: Python would not see the change."""
    return [
        str(source)
        for compiled in SRC.rglob(f"*{EXTENSION_SUFFIXES[0]}")
        for kind in (".py", ".pxd")
        if not (source := Path(str(compiled).replace(EXTENSION_SUFFIXES[0], kind))).exists()
        or source.stat().st_mtime > compiled.stat().st_mtime
    ]


if os.environ.get("PLAIN_PYTHON"):  # `make test-plain`: as on machines without a C compiler
    load_plain_python()
elif _stale := _newer_than_compiled():
    pytest.exit(f"run `make setup`: changed since it was compiled: {', '.join(_stale)}", 4)


# How long tests wait at most: a machine three times slower than ours passes, too.
os.environ.setdefault("SPARKSTORM_PATIENCE_SECS", "300")

from sparkstorm.testing.servers import guarded  # noqa: E402 - now that it is clear which modules

# --- all tests ---------------------------------------------------------------------------------

# Whatever a test starts ends with the process that runs the tests, even if that one is killed: each
# xdist worker has a mark of its own, which its servers, drivers and JVMs inherit.
os.environ.update(guarded())

# A program that was started with a signal ignored ignores it as well, as under nohup. With a
# handler this process goes on as before, and programs that tests start hear the signal.
for _number in (signal.SIGHUP, signal.SIGINT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)

# The JVMs of tests live for a minute or so: compiling twice costs them a sixth of the two cores.
for _variable in ("SPARK_SUBMIT_OPTS", "SPARK_DAEMON_JAVA_OPTS"):
    os.environ.setdefault(_variable, "-XX:TieredStopAtLevel=1")

# Each run draws new examples; a failure prints the blob that replays it. No deadline: a shared
# machine may be slow for a moment, and a slow example is not a wrong one. A test that needs more or
# fewer examples multiplies `settings().max_examples`, so that the profile counts there too.
settings.register_profile("dev", deadline=None, print_blob=True)
settings.register_profile("quick", deadline=None, print_blob=True, max_examples=10)
_PATIENT: dict[str, Any] = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("ci", max_examples=50, **_PATIENT)
settings.register_profile("thorough", max_examples=300, **_PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if IN_CI else "dev"))


@pytest.fixture(scope="session")
def in_ci() -> bool:
    """Whether the tests run where everything they could need has to be present."""
    return IN_CI


@pytest.fixture(scope="session", autouse=True)
def _state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Dead letters of runs without a checkpoint must not come to lie in the user's folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def absent(in_ci: bool) -> Callable[[str], NoReturn]:
    """What a test calls if a server it needs is not there: skips here, fails in CI."""

    def give_up(reason: str) -> NoReturn:
        if in_ci:
            pytest.fail(f"CI must have it: {reason}")
        pytest.skip(reason)

    return give_up


@pytest.fixture(scope="session")
def started(absent: Callable[[str], NoReturn]) -> "Callable[[Server], Server]":
    """Starts a server, which ends with its ``with`` block; skips here, fails in CI if it cannot."""
    from sparkstorm.errors import EnvironmentFault

    def start(server: "Server") -> "Server":
        try:
            server.start()
        except EnvironmentFault as fault:
            absent(str(fault))
        return server

    return start


@pytest.fixture
def lines() -> "Iterator[list[LogLine]]":
    """The lines that components print, log and report during a test."""
    from sparkstorm.tasks.report import LINES

    found: list[LogLine] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.__dict__["line"])

    logger, handler = logging.getLogger(LINES), Collect()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield found
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


# --- Spark -------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def spark(absent: Callable[[str], NoReturn]) -> Iterator["SparkSession"]:
    """The one local session, of two cores, that all tests marked ``spark`` share."""
    from sparkstorm.errors import EnvironmentFault
    from sparkstorm.spark.driver.session import make_session

    try:
        session = make_session("sparkstorm-tests", "local[2]")
    except EnvironmentFault as fault:
        absent(str(fault))
    yield session
    session.stop()
