"""A Redis for tests."""

import shutil
from typing import final

from sparkstorm.errors import EnvironmentFault
from sparkstorm.testing.servers.process import ServerProcess, ask, free_ports

__all__ = ["RedisServer"]


@final
class RedisServer(ServerProcess):
    """A Redis, run from the installed program; up in a tenth of a second.

    Every write is on disk before its answer, so a killed server loses nothing. Connect within
    ``with RedisServer() as redis`` by ``redis.url``.

    Args:
        program: the program ``redis-server``: a name on the PATH, or a path.
        password: what clients have to give; it is part of :attr:`url`.
    """

    def __init__(self, program: str = "redis-server", *, password: str = "") -> None:
        super().__init__()
        self._program = program
        self._password = password
        (self._port,) = free_ports(1)

    @property
    def address(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self._port}"

    @property
    def url(self) -> str:
        """The URL of database 0."""
        login = f":{self._password}@" if self._password else ""
        return f"redis://{login}{self.address}/0"

    def _command(self) -> list[str]:
        program = shutil.which(self._program)
        if program is None:
            raise EnvironmentFault(
                f"there is no Redis ({self._program} is missing): install the package redis-server"
            )
        settings = {
            "bind": "127.0.0.1",
            "port": str(self._port),
            "dir": str(self._folder),
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
            "daemonize": "no",
        }
        if self._password:
            settings["requirepass"] = self._password
        options = [part for name, value in settings.items() for part in (f"--{name}", value)]
        return [program, *options]

    def _answers(self) -> bool:
        # A server that still loads its data answers -LOADING.
        answer = ask("127.0.0.1", self._port, b"PING\r\n", 7)
        return answer.startswith((b"+PONG", b"-NOAUTH"))
