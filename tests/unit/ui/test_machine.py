"""The page of this machine's topologies: over the real registry and sockets, as a command."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from starlette.testclient import TestClient

from sparkstorm.checkpoint.holder import Holder
from sparkstorm.control.registry import Entry, Registry
from sparkstorm.control.server import ControlServer
from sparkstorm.testing import ManualClock
from sparkstorm.testing.control import FakeControl
from sparkstorm.ui import make_app
from sparkstorm.ui.machine import Machine

VIEWS = (
    "",
    "/messages",
    "/message?id=m00000",
    "/letters",
    "/letter?id=enrich-key-001",
    "/partitions",
    "/batches",
    "/ackers",
    "/component?id=enrich",
    "/configuration",
    "/logs",
)


@contextmanager
def listed(registry: Registry, control: FakeControl) -> Iterator[None]:
    """List a control in the registry, and let it answer on its socket."""
    holder = Holder.here("7f3a", 0.0)
    name = control.topology_id.removesuffix("-7f3a")
    entry = registry.add(Entry(id=control.topology_id, name=name, holder=holder))
    server = ControlServer(entry.socket, control)
    server.start()
    try:
        yield
    finally:
        server.close()
        registry.remove(entry)


def test_every_view_comes_over_the_socket(tmp_path: Path) -> None:
    """Also with texts that no protocol expects."""
    registry = Registry(tmp_path)
    hostile = FakeControl("hostile", hostile=True)
    with listed(registry, FakeControl("shop")), listed(registry, hostile):
        client = TestClient(make_app(Machine(registry)), base_url="http://localhost")
        for name in ("shop", "hostile"):
            for view in VIEWS:
                response = client.get(f"/topologies/{name}-7f3a{view}")
                assert response.status_code == 200, (view, response.text)
        answer = client.get("/api/v1/topology/hostile-7f3a/messages").json()
        names = [one["name"] for one in answer["messages"]]
        assert names == [one.name for one in hostile.messages().messages]
        client.post("/topologies/shop-7f3a/orders/deactivate")
        assert client.get("/api/v1/topology/shop-7f3a").json()["status"] == "INACTIVE"


def test_a_topology_stays_visible_after_its_end(tmp_path: Path) -> None:
    """It is no longer among those that run, but its page is there."""
    registry, clock = Registry(tmp_path), ManualClock()
    client = TestClient(make_app(Machine(registry), clock=clock), base_url="http://localhost")
    with listed(registry, FakeControl("shop")):
        assert client.get("/topologies/shop-7f3a").status_code == 200
    clock.advance(5)
    page = client.get("/topologies/shop-7f3a")
    assert page.status_code == 200
    assert "has ended, or does not answer" in page.text
    assert client.get("/api/v1/topology/summary").json()["topologies"] == []
    assert client.get("/readyz").json()["status"] == "ready"


@pytest.mark.process
def test_the_command_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    """Ctrl-C is a good end, even while a page is open."""
    registry = Registry(tmp_path / "registry")
    environment = {**os.environ, "SPARKSTORM_REGISTRY": str(registry.folder)}
    with listed(registry, FakeControl("shop")):
        page = subprocess.Popen(
            [sys.executable, "-m", "sparkstorm", "ui", "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert page.stdout is not None
        url = page.stdout.readline().split()[-1]
        with urlopen(f"{url}api/v1/topology/summary") as answer:  # noqa: S310 - our own
            (topology,) = json.load(answer)["topologies"]
        assert topology["id"] == "shop-7f3a"
        view = Request(f"{url}topologies/shop-7f3a", headers={"Accept": "text/event-stream"})  # noqa: S310
        with urlopen(view) as stream:  # noqa: S310
            assert stream.readline() == b"event: part\n"
            page.send_signal(signal.SIGINT)
            _, errors = page.communicate()
    assert (page.returncode, errors) == (0, "")


@pytest.mark.process
def test_without_the_extra_the_command_says_what_to_install(tmp_path: Path) -> None:
    """The other commands need no web framework."""
    (tmp_path / "fastapi.py").write_text("raise ImportError('no', name='fastapi')")
    done = subprocess.run(
        [sys.executable, "-m", "sparkstorm", "ui"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 2
    assert "pip install 'sparkstorm[ui]'" in done.stderr


def test_what_is_shipped_has_its_licence() -> None:
    """Each library of others in the package, and no page loads another one."""
    vendor = Path(make_app.__code__.co_filename).parent / "static" / "vendor"
    libraries = {one.name.removesuffix(".min.js") for one in vendor.glob("*.js")}
    assert libraries == {one.name.removesuffix(".LICENSE") for one in vendor.glob("*.LICENSE")}
    assert len(libraries) == 3
