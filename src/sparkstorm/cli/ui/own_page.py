"""The page of a run: ``sparkstorm ui`` as a child of ``run --ui``, ended with the run."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import IO
from urllib.parse import quote, urlsplit

from sparkstorm.control.registry import Registry
from sparkstorm.errors import EnvironmentFault, SparkstormError
from sparkstorm.texts.logs import logger_of

__all__ = ["check_extra", "own_page"]

_NEEDED = ("fastapi", "jinja2", "uvicorn")
_END_SECS = 10.0

_logger = logger_of(__name__)


def check_extra() -> None:
    """Look for the page's libraries: a run should not find out after Spark's start.

    Raises:
        EnvironmentFault: one is missing.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise EnvironmentFault(
            f"the web page needs {', '.join(missing)}: pip install 'sparkstorm[ui]'"
        )


@contextmanager
def own_page(name: str, port: int) -> Iterator[str | None]:
    """Serve the page of this process's topology during a ``with`` block.

    Yields the page's address. A page that does not start is a warning, and None is yielded: the
    run goes on without.

    Args:
        name: the topology's name.
        port: the port; if another process has it, any free one.
    """
    # A session of its own: Ctrl-C drains the run, and the page shows the drain. The page ends at
    # the end of its stdin, so it outlives no killed driver.
    page = subprocess.Popen(  # noqa: S603 - our own module under our own Python
        [sys.executable, "-m", "sparkstorm", "ui", "--child", "--port", str(_free(port))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert page.stdin is not None  # noqa: S101 - for mypy
    assert page.stdout is not None  # noqa: S101 - for mypy
    try:
        url = _address(page.stdout)
        if url is None:
            _logger.warning("the web page did not start; sparkstorm ui serves it as well")
        yield None if url is None else _enter(name, url)
    finally:
        page.stdin.close()
        try:
            page.wait(_END_SECS)
        except subprocess.TimeoutExpired:
            page.kill()
            page.wait()
        page.stdout.close()


def _address(said: IO[str]) -> str | None:
    """Return the address that the page prints; None if the page has ended."""
    words = said.readline().split()
    return words[-1] if words else None


def _enter(name: str, url: str) -> str:
    """Return the address of the topology's view, and write it into the registry."""
    at = urlsplit(url)
    try:
        registry = Registry()
        for entry in registry.entries():
            if entry.name == name and entry.holder.pid == os.getpid() and not entry.is_dead:
                at = at._replace(path=f"/topologies/{quote(entry.id)}")
                # Without the token, since people send around what sparkstorm list shows.
                registry.change(replace(entry, page=at._replace(query="").geturl()))
    except (OSError, SparkstormError) as error:
        _logger.warning("sparkstorm list will not show the page: %s", error)
    return at.geturl()


def _free(port: int) -> int:
    """Return the port, or 0 for any other if the port is taken."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return 0
    return port
