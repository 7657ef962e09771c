"""The servers that tests can start: they answer, survive a crash, and say what is missing."""

import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkstorm.errors import EnvironmentFault
from sparkstorm.testing.servers import (
    KafkaServer,
    PostgresServer,
    RabbitServer,
    RedisServer,
    ServerProcess,
    ZooKeeperServer,
)


def accepts(address: str) -> bool:
    """Whether something listens there."""
    host, port = address.split(":")
    with socket.socket() as link:
        return link.connect_ex((host, int(port))) == 0


@pytest.mark.e2e
@pytest.mark.parametrize(
    "kind",
    [
        KafkaServer,
        ZooKeeperServer,
        PostgresServer,
        pytest.param(RabbitServer, marks=pytest.mark.slow),
        RedisServer,
    ],
)
def test_a_server_comes_back_after_a_crash(
    kind: Callable[[], ServerProcess], started: Callable[[ServerProcess], ServerProcess]
) -> None:
    """It answers on the same address as before, and nothing is left when the block ends."""
    with started(kind()) as server:
        address = server.address
        server.kill()
        assert not accepts(address)
        server.start()
        assert server.address == address
        assert accepts(address)
    assert not accepts(address)


@pytest.mark.parametrize("kind", [KafkaServer, ZooKeeperServer])
def test_a_missing_java_is_named(
    kind: type[KafkaServer] | type[ZooKeeperServer],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Without Java there is one clear sentence, before anything is fetched; no folder is left."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(EnvironmentFault, match="JAVA_HOME is /nowhere"), kind():
        pass
    assert not list(tmp_path.iterdir())


def test_a_missing_postgres_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for PostgreSQL."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with (
        pytest.raises(EnvironmentFault, match=f"no PostgreSQL in {tmp_path}.*install the package"),
        PostgresServer(tmp_path),
    ):
        pass
    assert not list(tmp_path.iterdir())


def test_a_missing_redis_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for Redis."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with (
        pytest.raises(EnvironmentFault, match=r"no Redis .redis-nowhere.*install the package"),
        RedisServer("redis-nowhere"),
    ):
        pass
    assert not list(tmp_path.iterdir())
