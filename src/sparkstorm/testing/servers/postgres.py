"""A PostgreSQL for tests."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import final

from sparkstorm.errors import EnvironmentFault
from sparkstorm.testing.servers.process import LOOK_SECS, STOP_SECS, ServerProcess, free_ports, run

__all__ = ["PostgresServer"]


@final
class PostgresServer(ServerProcess):
    """A PostgreSQL, run from the installed programs; up in about a second.

    The server trusts everybody on this machine. Connect within ``with PostgresServer() as
    postgres`` by ``psycopg.connect(postgres.dsn)``.

    Args:
        programs: the folder of ``initdb`` and ``postgres``; by default the folder on the PATH, or
            else the newest version that Debian has installed.
    """

    _stop_signal = signal.SIGINT  # SIGTERM waits for clients to go

    def __init__(self, programs: str | os.PathLike[str] | None = None) -> None:
        super().__init__()
        self._programs = programs
        self._user = "nobody" if os.geteuid() == 0 else None  # PostgreSQL refuses to be root
        (self._port,) = free_ports(1)

    @property
    def address(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self._port}"

    @property
    def dsn(self) -> str:
        """The connection string of the database ``postgres``, as its owner."""
        return f"postgresql://postgres@{self.address}/postgres"

    def _command(self) -> list[str]:
        data = self._folder / "data"
        if not data.exists():
            data.mkdir(mode=0o700)
            if self._user is not None:
                shutil.chown(self._folder, self._user)
                shutil.chown(data, self._user)
            initdb = [self._program("initdb"), "-D", str(data), "-U", "postgres", "-A", "trust"]
            run([*initdb, "-E", "UTF8", "--no-sync"], "cannot make a database", self._user)
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self._port),
            "unix_socket_directories": "",
            "max_prepared_transactions": "10",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [self._program("postgres"), "-D", str(data), *options]

    def _answers(self) -> bool:
        ask = [self._program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self._port)]
        return subprocess.run(ask).returncode == 0  # noqa: S603 - our own command

    def _end(self, how: signal.Signals) -> None:
        """End the server and wait for its children, which hold the shared memory.

        Each child has a session of its own, out of reach of the signal to the server's group.
        """
        process = self._process
        children = [] if process is None else _children_of(process.pid)
        super()._end(how)
        deadline = time.monotonic() + STOP_SECS
        while any(map(_exists, children)) and time.monotonic() < deadline:
            time.sleep(LOOK_SECS)

    def _program(self, name: str) -> str:
        folders = [self._programs] if self._programs else _postgres_folders()
        found = next((path for folder in folders if (path := Path(folder) / name).exists()), None)
        if found is None:
            where = ", ".join(map(str, folders)) or "the PATH and /usr/lib/postgresql"
            raise EnvironmentFault(
                f"there is no PostgreSQL in {where} ({name} is missing): install the package "
                f"postgresql"
            )
        return str(found)


def _postgres_folders() -> list[Path]:
    """Return the folders with PostgreSQL's programs: on the PATH, or Debian's for each version."""
    on_path = shutil.which("postgres")
    versions = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: folder.parent.name
    )
    return [*([Path(on_path).parent] if on_path else []), *reversed(versions)]


def _children_of(pid: int) -> list[int]:
    """Return the processes that a process has started; none on systems without /proc."""
    with contextlib.suppress(OSError):
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    return []


def _exists(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, 0)
        return True
    return False
