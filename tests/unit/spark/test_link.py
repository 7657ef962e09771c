"""The socket between the driver and the reader process."""

import tempfile
import threading
from pathlib import Path

import pytest

from sparkstorm.errors import InternalError
from sparkstorm.spark.link import LinkClient, LinkServer
from sparkstorm.testing import PATIENCE_SECS


def threads_of_links() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name.startswith("sparkstorm-link")}


def test_what_is_asked_is_answered() -> None:
    """Head and parts come back; an error is told by its text; a wrong token gets no answer."""

    def handle(question: dict[str, object]) -> tuple[dict[str, object], list[bytes]]:
        return {"twice": 2 * question["n"]}, [b"a", b""]  # type: ignore[operator]

    server = LinkServer(handle)
    try:
        client = LinkClient(server.path, server.token)
        assert client.ask({"n": 21}) == ({"twice": 42}, [b"a", b""])
        with pytest.raises(InternalError, match="KeyError"):
            client.ask({})
        stranger = LinkClient(server.path, "guessed")
        with pytest.raises(ConnectionError):
            stranger.ask({"n": 1})
        for one in (client, stranger):
            one.close()
    finally:
        server.close()


def test_a_closed_link_leaves_nothing_behind() -> None:
    """Neither a thread that waits for somebody to connect, nor the socket's folder."""
    before = threads_of_links()
    server = LinkServer(lambda question: ({}, ()))
    client = LinkClient(server.path, server.token)
    client.ask({})
    mine = threads_of_links() - before
    client.close()
    server.close()
    for thread in mine:
        thread.join(PATIENCE_SECS)
    assert mine
    assert not any(thread.is_alive() for thread in mine)
    assert not Path(server.path).parent.exists()


def test_a_long_path_of_temporary_files_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path of a Unix socket has a hundred bytes or so; nothing is left where it has no room."""
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    server = LinkServer(lambda question: ({"answer": 1}, ()))
    client = LinkClient(server.path, server.token)
    try:
        assert client.ask({}) == ({"answer": 1}, [])
    finally:
        client.close()
        server.close()
    assert list(long.iterdir()) == []
