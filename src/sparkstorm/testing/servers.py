"""Real servers for tests, on loopback: a Kafka broker, ZooKeeper, PostgreSQL.

Kafka's jars are fetched once from Maven Central into a cache folder (45 MB, about 45 seconds) by
the Ivy that comes with PySpark; no Maven, no container. PostgreSQL is the one that is installed.
Each server has a folder and free ports of its own, and is stopped
at the end of its ``with`` block.
"""

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Self, final

from sparkstorm.errors import EnvironmentFault

__all__ = ["KafkaServer", "PostgresServer", "ServerProcess", "ZooKeeperServer"]

_KAFKA = (
    ("org.apache.kafka", "kafka_2.13", "4.3.1"),
    # without a logging binding a broker that fails says nothing
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
)
_START_SECS = 60.0
_STOP_SECS = 10.0
_LOOK_SECS = 0.05
_LOG_LINES = 15


class ServerProcess(ABC):
    """A server with a folder of its own; a context manager that starts and stops it.

    ``kill`` ends it as a crash would, ``start`` starts it again on the same folder and ports.
    """

    _user: str | None = None
    """Who runs it, if not who runs the tests."""

    _stop_signal = signal.SIGTERM

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="sparkstorm-server-"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def address(self) -> str:
        """Where clients connect: ``host:port``."""

    @property
    def log(self) -> str:
        """What the server printed so far."""
        path = self._folder / "console.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> None:
        """Start it and wait until it answers a client; nothing happens if it runs.

        Raises:
            EnvironmentFault: a program or the network is missing, or it does not come up.
        """
        if self._process is not None and self._process.poll() is None:
            return
        command = self._command()
        with (self._folder / "console.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=self._user,
            )
        deadline = time.monotonic() + _START_SECS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                tail = "\n".join(self.log.splitlines()[-_LOG_LINES:])
                raise EnvironmentFault(f"{type(self).__name__} did not come up:\n{tail}")
            time.sleep(_LOOK_SECS)

    def stop(self) -> None:
        """Stop it in good order, if it runs."""
        self._end(self._stop_signal)

    def kill(self) -> None:
        """End it at once, as a crash would (``kill -9``)."""
        self._end(signal.SIGKILL)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __repr__(self) -> str:
        up = self._process is not None and self._process.poll() is None
        return f"{type(self).__name__}({self.address}, {'up' if up else 'down'})"

    @abstractmethod
    def _command(self) -> list[str]:
        """Prepare the folder and return the command."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether a client gets an answer."""

    def _end(self, how: signal.Signals) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        os.killpg(process.pid, how)
        try:
            process.wait(_STOP_SECS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@final
class KafkaServer(ServerProcess):
    """One Kafka 4.3 broker, its own controller (KRaft); up in about three seconds.

    Args:
        properties: more of the broker's properties.
        joins: another one whose cluster it is a further broker of. That one is the controller, so
            it must be started first, and the cluster lives only as long as it.

    With it, ``with KafkaServer() as kafka: kafka.address`` is what goes into
    ``bootstrap_servers``.
    """

    def __init__(
        self, properties: Mapping[str, str] | None = None, *, joins: "KafkaServer | None" = None
    ) -> None:
        super().__init__()
        self._port, own = _free_ports(2)
        self._joins = joins is not None
        self.controller: str = f"127.0.0.1:{own}" if joins is None else joins.controller
        """Where the brokers of its cluster find their controller."""
        self._properties = dict(properties or {})

    @property
    def node(self) -> int:
        """Its id in the cluster."""
        return self._port if self._joins else 1

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self._port}"

    def _command(self) -> list[str]:
        java, jars = _java(), _cached_jars("kafka", _KAFKA)
        config = self._folder / "server.properties"
        if not config.exists():
            lines = [f"{key}={value}" for key, value in self._settings().items()]
            config.write_text("\n".join(lines))
            _run(
                [
                    *(java, "-XX:TieredStopAtLevel=1", "-cp", jars, "kafka.tools.StorageTool"),
                    *("format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(config)),
                ],
                "cannot format the broker's folder",
            )
        memory = ("-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        return [java, *memory, "-cp", jars, "kafka.Kafka", str(config)]

    def _answers(self) -> bool:
        """Ask for the versions of the protocol: the oldest form, which every broker knows."""
        request = b"\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff"
        head = _ask("127.0.0.1", self._port, len(request).to_bytes(4, "big") + request, 10)
        return head[4:10] == b"\x00\x00\x00\x01\x00\x00"

    def _settings(self) -> dict[str, str]:
        listener = f"PLAINTEXT://{self.address}"
        return {
            "process.roles": "broker" if self._joins else "broker,controller",
            "node.id": str(self.node),
            "controller.quorum.voters": f"1@{self.controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": listener if self._joins else f"{listener},CONTROLLER://{self.controller}",
            "advertised.listeners": listener,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self._folder / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "4",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "log.cleaner.dedupe.buffer.size": "4194304",
            # after a crash a broker waits for its old session to end: 12 seconds by default
            "broker.heartbeat.interval.ms": "500",
            "broker.session.timeout.ms": "1500",
            **self._properties,
        }


@final
class ZooKeeperServer(ServerProcess):
    """One ZooKeeper 3.9, from the jars that come with PySpark; up in about a second."""

    def __init__(self) -> None:
        super().__init__()
        (self._port,) = _free_ports(1)

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self._port}"

    def _command(self) -> list[str]:
        config = self._folder / "zoo.cfg"
        config.write_text(
            f"dataDir={self._folder / 'data'}\nclientPort={self._port}\n"
            "clientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
            "4lw.commands.whitelist=ruok,srvr\n"
        )
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        jars = f"{_pyspark_jars()}/*"
        return [_java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", jars, main, str(config)]

    def _answers(self) -> bool:
        return b"Mode:" in _ask("127.0.0.1", self._port, b"srvr", 4096)


@final
class PostgresServer(ServerProcess):
    """One PostgreSQL, from the programs that are installed; up in about a second.

    It trusts whoever connects from this machine. ``with PostgresServer() as postgres:
    psycopg.connect(postgres.dsn)``.

    Args:
        programs: the folder of ``initdb`` and ``postgres``; by default that of the PATH, or
            the newest that Debian has installed.
    """

    _stop_signal = signal.SIGINT  # SIGTERM waits for clients to go

    def __init__(self, programs: str | os.PathLike[str] | None = None) -> None:
        super().__init__()
        self._programs = programs
        self._user = "nobody" if os.geteuid() == 0 else None  # PostgreSQL refuses to be root
        (self._port,) = _free_ports(1)

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self._port}"

    @property
    def dsn(self) -> str:
        """The database ``postgres`` for its owner, as clients take it."""
        return f"postgresql://postgres@{self.address}/postgres"

    def _command(self) -> list[str]:
        data = self._folder / "data"
        if not data.exists():
            data.mkdir(mode=0o700)
            if self._user is not None:
                shutil.chown(self._folder, self._user)
                shutil.chown(data, self._user)
            initdb = [self._program("initdb"), "-D", str(data), "-U", "postgres", "-A", "trust"]
            _run([*initdb, "-E", "UTF8", "--no-sync"], "cannot make a database", self._user)
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
        """End it, and wait for its children: each has a session of its own, and the memory."""
        process = self._process
        children = [] if process is None else _children_of(process.pid)
        super()._end(how)
        deadline = time.monotonic() + _STOP_SECS
        while any(map(_exists, children)) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECS)

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
    """Where its programs may be: on the PATH, or where Debian puts each version."""
    on_path = shutil.which("postgres")
    versions = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: folder.parent.name
    )
    return [*([Path(on_path).parent] if on_path else []), *reversed(versions)]


def _children_of(pid: int) -> list[int]:
    """The processes that one has started; on systems without /proc none are known."""
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


def _cached_jars(name: str, modules: tuple[tuple[str, str, str], ...]) -> str:
    """Return a class path with these modules of Maven Central and all that they need."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sparkstorm"
    folder = home / f"{name}-{modules[0][2]}"
    if not folder.exists():
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            _resolve(modules, Path(scratch))
            # several processes may do this at once: whoever comes second finds it done
            with contextlib.suppress(OSError):
                (Path(scratch) / "jars").rename(folder)
    return f"{folder}/*"


def _resolve(modules: tuple[tuple[str, str, str], ...], scratch: Path) -> None:
    wanted = "".join(
        f'<dependency org="{org}" name="{name}" rev="{rev}" conf="default->default"/>'
        for org, name, rev in modules
    )
    (scratch / "ivy.xml").write_text(
        '<ivy-module version="2.0"><info organisation="sparkstorm" module="servers"/>'
        f"<dependencies>{wanted}</dependencies></ivy-module>"
    )
    ivy = next(_pyspark_jars().glob("ivy-*.jar"), None)
    if ivy is None:
        raise EnvironmentFault(f"PySpark's folder {_pyspark_jars()} has no Ivy to fetch jars with")
    _run(
        [
            *(_java(), "-jar", str(ivy), "-ivy", str(scratch / "ivy.xml")),
            *("-cache", str(scratch / "cache"), "-types", "jar", "bundle", "-warn", "-retrieve"),
            f"{scratch}/jars/[artifact]-[revision](-[classifier]).[ext]",
        ],
        f"cannot fetch {modules[0][1]} from Maven Central (is there a network?)",
    )


def _run(command: list[str], what: str, user: str | None = None) -> None:
    done = subprocess.run(  # noqa: S603 - our own command
        command, capture_output=True, text=True, user=user, cwd="/"
    )
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-_LOG_LINES:])
        raise EnvironmentFault(f"{what}:\n{tail}")


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        raise EnvironmentFault("there is no Java to run the server with: install Java 17")
    return java


def _pyspark_jars() -> Path:
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise EnvironmentFault("PySpark is not installed, whose jars the server needs")
    return Path(found.origin).parent / "jars"


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _ask(host: str, port: int, request: bytes, most: int) -> bytes:
    """Send a request and return the answer's first bytes; nothing if there is no answer."""
    with (
        contextlib.suppress(OSError),
        socket.create_connection((host, port), timeout=1.0) as link,
    ):
        link.sendall(request)
        answer = b""
        while len(answer) < most and (piece := link.recv(most - len(answer))):
            answer += piece
        return answer
    return b""
