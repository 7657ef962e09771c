"""A headless Chromium, and the page of two made-up topologies."""

import shutil
import threading
from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from sparkstorm.testing import PATIENCE_SECS
from sparkstorm.testing.control import FakeControl, FakeRegistry
from sparkstorm.ui import Server

NAMES = ("chromium", "chromium-browser", "google-chrome")


# Not for the session: Playwright keeps an event loop running, and tests of other files need theirs.
@pytest.fixture(scope="module")
def browser(absent: Callable[[str], NoReturn]) -> Iterator[Browser]:
    """One browser for the tests of a file; each has a context of its own."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        absent("Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found,
            # Containers: tests run as root there, and with little shared memory.
            args=["--no-sandbox", "--disable-dev-shm-usage"],
        )
        yield browser
        browser.close()


@pytest.fixture
def shop() -> FakeControl:
    return FakeControl("shop")


@pytest.fixture
def url(shop: FakeControl) -> Iterator[str]:
    """The page's address, without the slash at its end."""
    registry = FakeRegistry([shop, FakeControl("hostile", hostile=True)])
    server = Server(registry, port=0)
    thread = threading.Thread(target=server.run)
    thread.start()
    yield server.url.rstrip("/")
    server.stop()
    thread.join()


@pytest.fixture
def faults() -> list[str]:
    """What went wrong in the browser; must be empty when a test ends."""
    return []


@pytest.fixture
def page(browser: Browser, url: str, faults: list[str]) -> Iterator[Page]:
    """A page that fails the test if a script fails, or if anything is loaded from elsewhere."""
    context = browser.new_context(base_url=url, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(1000 * PATIENCE_SECS)
    page = context.new_page()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda line: faults.append(line.text) if line.type == "error" else None)
    page.on(
        "request",
        lambda request: None if request.url.startswith(url) else faults.append(request.url),
    )
    yield page
    context.close()
    # A refused order, and the end of the server, are lines of the console, too.
    assert [one for one in faults if "Failed to load resource" not in one] == []
