"""A pytest plugin: a test that takes too long fails with one stack, that of the test.

It sets the timers of pytest-timeout. By itself that prints the stacks of all threads: with a JVM
and some clients connected these are thousands of lines, and the cause is in one of them.
"""

import os
import signal
import sys
import threading
import traceback
from pathlib import Path
from types import FrameType
from typing import Protocol

import pytest

ROOT = Path(__file__).parents[2]

_GRACE_SECS = 60.0
"""How long a test may take to end after its time is up; then its process is ended."""

_STDERR = pytest.StashKey[int]()
"""The file of this process's stderr, which pytest does not capture."""

_last_resorts: dict[str, threading.Timer] = {}
"""By test: ends the process of a test that cannot be interrupted."""


class Settings(Protocol):
    """The limits of a test, as pytest-timeout has read them."""

    timeout: float


def stack_of(frame: FrameType | None) -> str:
    """Return a stack as text: the calls in our own files, from the test down, and the last one."""
    entries = traceback.extract_stack(frame)
    ours = [entry for entry in entries if _is_ours(Path(entry.filename))]
    last = [] if entries[-1:] == ours[-1:] else entries[-1:]
    return "".join(traceback.format_list([*ours, *last])).rstrip()


def _is_ours(path: Path) -> bool:
    return path.is_relative_to(ROOT) and "site-packages" not in path.parts


def pytest_configure(config: pytest.Config) -> None:
    """Keep stderr, since pytest captures nothing at this moment."""
    config.stash[_STDERR] = os.dup(2)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Give it back."""
    os.close(config.stash[_STDERR])


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Settings) -> bool:
    """Set an alarm that fails the test, and a timer in case the test does not hear it."""

    def fail(signum: int, frame: FrameType | None) -> None:
        pytest.fail(f"not done after {settings.timeout:g} s:\n{stack_of(frame)}", pytrace=False)

    def end() -> None:
        frame = sys._current_frames()[threading.main_thread().ident or 0]
        said = f"\n{item.nodeid} cannot be interrupted; it is here:\n{stack_of(frame)}\n"
        os.write(item.config.stash[_STDERR], said.encode())
        os._exit(1)

    signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
    if not item.config.getoption("usepdb"):
        last_resort = threading.Timer(settings.timeout + _GRACE_SECS, end)
        last_resort.daemon = True
        last_resort.start()
        _last_resorts[item.nodeid] = last_resort
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_cancel_timer(item: pytest.Item) -> bool:
    """Take back the alarm: the test is done, or it has failed and has still to clean up."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    return True


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Take back the timer, now that all is cleaned up."""
    if last_resort := _last_resorts.pop(nodeid, None):
        last_resort.cancel()
