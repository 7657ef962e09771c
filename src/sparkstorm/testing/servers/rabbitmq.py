"""A RabbitMQ for tests."""

import os
import subprocess
from pathlib import Path
from typing import final

from sparkstorm.errors import EnvironmentFault
from sparkstorm.testing.servers.guardian import guarded
from sparkstorm.testing.servers.process import STOP_SECS, ServerProcess, ask, free_ports

__all__ = ["RabbitServer"]

_PROGRAMS = Path("/usr/lib/rabbitmq/bin")
_MISSING = "there is no {}: install the package rabbitmq-server"
_HELLO = b"AMQP\x00\x00\x09\x01"
"""The first bytes of an AMQP 0-9-1 client; the server answers with a method frame (type 1)."""
_CONFIG = """\
listeners.tcp.1 = 127.0.0.1:{port}
disk_free_limit.absolute = 50MB
vm_memory_high_watermark.absolute = 512MB
"""
_ERLANG = (
    "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1 +sbwt none -rabbit quorum_tick_interval 100"
)
"""A quorum queue counts its messages at each tick: else every five seconds."""


@final
class RabbitServer(ServerProcess):
    """A RabbitMQ, run from the installed programs; up in about six seconds.

    The user ``guest`` with the password ``guest`` may do everything. Connect within ``with
    RabbitServer() as rabbit`` by ``rabbit.url``. The server keeps its own folder, ports and Erlang
    name server, so that several servers run side by side.

    Args:
        programs: the folder of ``rabbitmq-server`` and ``rabbitmqctl``.
    """

    def __init__(self, programs: str | os.PathLike[str] = _PROGRAMS) -> None:
        super().__init__()
        self._programs = Path(programs)
        self._port, self._dist_port, self._names_port = free_ports(3)
        self._names: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self._port}"

    @property
    def url(self) -> str:
        """The URL for clients, with the user ``guest``."""
        return f"amqp://guest:guest@{self.address}/"

    def queue_counts(self) -> dict[str, tuple[int, int]]:
        """Return for each queue how many messages are ready, and how many are unacknowledged."""
        columns = ["name", "messages_ready", "messages_unacknowledged"]
        lines = self.control("list_queues", "--no-table-headers", *columns).splitlines()
        rows = [line.split("\t") for line in lines]
        return {name: (int(ready), int(unacked)) for name, ready, unacked in rows}

    def control(self, *words: str) -> str:
        """Run ``rabbitmqctl`` and return its output.

        Raises:
            EnvironmentFault: the command failed.
        """
        command = [self._program("rabbitmqctl"), "--quiet", *words]
        done = subprocess.run(  # noqa: S603 - our own command
            command, capture_output=True, text=True, env={**os.environ, **self._environment()}
        )
        if done.returncode:
            raise EnvironmentFault(f"rabbitmqctl {words[0]} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        super().__exit__(kind, error, trace)
        if self._names is not None:
            self._names.terminate()
            self._names.wait(STOP_SECS)

    def _command(self) -> list[str]:
        config = self._folder / "rabbitmq.conf"
        if not config.exists():
            config.write_text(_CONFIG.format(port=self._port))
        if self._names is None:
            self._names = self._started_names()
        environment = [f"{name}={value}" for name, value in self._environment().items()]
        return ["env", *environment, self._program("rabbitmq-server")]

    def _answers(self) -> bool:
        # The port accepts before the broker serves; only a broker that serves greets.
        return ask("127.0.0.1", self._port, _HELLO, 1) == b"\x01"

    def _started_names(self) -> "subprocess.Popen[bytes]":
        """Start the Erlang name server, where ``rabbitmqctl`` finds the broker."""
        command = ["epmd", "-address", "127.0.0.1", "-port", str(self._names_port)]
        try:
            return subprocess.Popen(  # noqa: S603 - our own command
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, **guarded()},
            )
        except FileNotFoundError as error:
            raise EnvironmentFault(_MISSING.format("epmd")) from error

    def _environment(self) -> dict[str, str]:
        """Return the variables that keep the server and its tools in the folder."""
        return {
            # The cookie lies in HOME: all nodes and tools of the server share the cookie.
            "HOME": str(self._folder),
            "ERL_EPMD_PORT": str(self._names_port),
            "RABBITMQ_NODENAME": f"q{self._port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(self._dist_port),
            "RABBITMQ_MNESIA_BASE": str(self._folder / "data"),
            "RABBITMQ_LOG_BASE": str(self._folder / "log"),
            "RABBITMQ_PID_FILE": str(self._folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(self._folder / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(self._folder / "rabbitmq-env.conf"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _ERLANG,
        }

    def _program(self, name: str) -> str:
        path = self._programs / name
        if not path.exists():
            raise EnvironmentFault(_MISSING.format(path))
        return str(path)
