"""What the tests of the page share: fake topologies, and a client of the page."""

import pytest
from starlette.testclient import TestClient

from sparkstorm.testing.control import FakeControl, FakeRegistry
from sparkstorm.ui import make_app


@pytest.fixture
def shop() -> FakeControl:
    return FakeControl("shop")


@pytest.fixture
def registry(shop: FakeControl) -> FakeRegistry:
    return FakeRegistry([shop, FakeControl("hostile", hostile=True)])


@pytest.fixture(scope="session")
def reader() -> TestClient:
    """A client for tests that give no orders."""
    registry = FakeRegistry([FakeControl("shop"), FakeControl("hostile", hostile=True)])
    return TestClient(make_app(registry), base_url="http://localhost", follow_redirects=False)


@pytest.fixture
def client(registry: FakeRegistry) -> TestClient:
    return TestClient(make_app(registry), base_url="http://localhost", follow_redirects=False)
