"""The server: a driver answers on a Unix socket, a line of JSON for a line of JSON.

Only processes of the same user reach the socket, by the rights of its folder. A connection may ask
several times. Whatever goes wrong is an answer: nothing that a client sends ends the driver.
"""

import json
import logging
import socketserver
import threading
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any, final

from sparkstorm.control.control import Control
from sparkstorm.errors import SparkstormError
from sparkstorm.texts.logs import logger_of
from sparkstorm.texts.user_errors import message_of

__all__ = ["METHODS", "ControlServer"]

METHODS = frozenset(name for name in vars(Control) if not name.startswith("_"))
"""The questions and orders that a client may send."""

_MOST_BYTES = 16 * 1024 * 1024
"""The longest request: values of an edited dead letter."""

_LOOK_SECS = 0.05
"""How often the server looks whether it is closed: a run's end waits for that."""

_logger = logger_of(__name__)


@final
class ControlServer:
    """Answers on a socket, on threads of its own, until it is closed.

    Args:
        path: the socket's path.
        control: gives the answers.
    """

    def __init__(self, path: str, control: Control) -> None:
        self._server = _Server(path, _Handler)
        self._server.control = control
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": _LOOK_SECS},
            name="sparkstorm-control",
            daemon=True,
        )

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()


@final
class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    control: Control

    def handle_error(self, request: object, client_address: object) -> None:
        """Say it in the log alone: clients come and go."""
        _logger.log(logging.DEBUG, "a client of the control socket went away", exc_info=True)


@final
class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        """Answer each line."""
        while line := self.rfile.readline(_MOST_BYTES):
            if not line.endswith(b"\n"):  # too long, or cut off
                return
            self.wfile.write(json.dumps(_answer(self.server.control, line)).encode() + b"\n")


def _answer(control: Control, line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
        method, arguments = request["method"], request.get("arguments", {})
        if method not in METHODS or not isinstance(arguments, Mapping):
            raise ValueError(f"there is no question {method!r}")
        return {"result": _plain(getattr(control, method)(**arguments))}
    except SparkstormError as error:
        return {"error": str(error), "kind": type(error).__name__}
    except Exception as error:
        _logger.debug("a request on the control socket failed", exc_info=True)
        return {"error": message_of(error), "kind": "InternalError"}


def _plain(result: Any) -> Any:
    if is_dataclass(result) and not isinstance(result, type):
        return asdict(result)
    if isinstance(result, list):
        return [_plain(one) for one in result]
    return result
