"""Serving the page: the address, the token, and the process's end."""

import ipaddress
import logging
import secrets
import socket
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import final

import uvicorn

from sparkstorm.clock import Clock
from sparkstorm.errors import ConfigError, WorldError
from sparkstorm.ui.app import make_app
from sparkstorm.ui.registry import Registry
from sparkstorm.ui.safety import is_loopback

__all__ = ["DEFAULT_PORT", "Server", "serve"]

DEFAULT_PORT = 8642

_SHORTEST_TOKEN = 16
_GRACE_SECS = 3
"""Open pages are told to end within a second; connections that stay are cut after so long."""


@final
class Server:
    """The page at an address; may run on any thread.

    >>> from sparkstorm.testing.control import FakeRegistry
    >>> server = Server(FakeRegistry([]), port=0)
    >>> server.url.startswith("http://127.0.0.1:")
    True
    >>> server.close()
    """

    def __init__(
        self,
        registry: Registry,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
        *,
        token: str | None = None,
        hosts: Collection[str] = (),
        clock: Clock | None = None,
    ) -> None:
        """Take the address.

        Args:
            registry: knows the running topologies.
            host: the address to listen on; beyond loopback, a token is made if none is given.
            port: the port; 0 takes any free one.
            token: whoever has it may look and steer.
            hosts: further names under which the page may be opened.
            clock: the time; tests pass a manual one.

        Raises:
            ConfigError: the token is short, or the host is none of this machine.
            WorldError: the port is taken.
        """
        if token is not None and len(token) < _SHORTEST_TOKEN:
            raise ConfigError(f"A token has {_SHORTEST_TOKEN} characters at least.")
        if token is None and not is_loopback(host):
            token = secrets.token_urlsafe(24)
        self.token = token
        self._socket = _listen(host, port)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        app = make_app(registry, token=token, hosts=[*hosts, *_names(host)], clock=clock)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_level=logging.WARNING,
                access_log=False,  # an address may hold a token
                server_header=False,
                timeout_graceful_shutdown=_GRACE_SECS,
            )
        )
        app.state.ended = self._is_ending

    @property
    def url(self) -> str:
        """The address to open in a browser; it holds the token, if there is one."""
        any_host = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}  # noqa: S104
        host = any_host.get(self.host, self.host)
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/" + (f"?token={self.token}" if self.token else "")

    def run(self) -> None:
        """Serve until :meth:`stop` is called, or Ctrl-C or SIGTERM on the main thread."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self.close()

    def stop(self) -> None:
        """Let :meth:`run` return soon; any thread may call it."""
        self._server.should_exit = True

    def _is_ending(self) -> bool:
        return self._server.should_exit

    def close(self) -> None:
        """Give the address back."""
        self._socket.close()


def serve(
    registry: Registry,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    *,
    token: str | None = None,
    hosts: Collection[str] = (),
    ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve the page until Ctrl-C or SIGTERM; see :class:`Server` for arguments and errors.

    Args:
        registry: knows the running topologies.
        host: the address to listen on.
        port: the port.
        token: whoever has it may look and steer.
        hosts: further names under which the page may be opened.
        ready: called with the page's address, once it is taken.
    """
    server = Server(registry, host, port, token=token, hosts=hosts)
    ready(server.url)
    with suppress(KeyboardInterrupt):  # the way to end it, once it has shut down
        server.run()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise ConfigError(f"{host!r} is no address of this machine.") from None
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(512)
    except (OSError, OverflowError) as error:
        listening.close()
        raise WorldError(
            f"Port {port} of {host} cannot be taken ({error}): choose another by --port, or 0 for "
            "any free one."
        ) from None
    return listening


def _names(host: str) -> list[str]:
    """Return the names of this machine under which an address beyond loopback is opened."""
    if is_loopback(host):
        return []
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return [host]
    return [socket.gethostname(), socket.getfqdn()]
