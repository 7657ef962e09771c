"""Make the pictures of docs/ui.md: the page of a made-up topology, in a headless Chromium.

python scripts/ui_screenshots.py [FOLDER]
"""

import shutil
import sys
import threading
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from sparkstorm.testing import ManualClock
from sparkstorm.testing.control import FakeControl, FakeRegistry
from sparkstorm.ui import Server

FOLDER = Path(__file__).parents[1] / "docs" / "images"
SHOP = "/topologies/shop-7f3a"
NOW = 1_790_000_000.0
PICTURES = {
    "ui-overview": (SHOP, "light", 1180, 760),
    "ui-message": (f"{SHOP}/message?id=m00000", "dark", 1180, 720),
    "ui-letters": (f"{SHOP}/letters?group=enrich-key", "light", 1180, 640),
    "ui-partitions": (f"{SHOP}/partitions", "light", 1180, 640),
    "ui-phone": (SHOP, "light", 390, 760),
}


def main() -> None:
    """Write all pictures into a folder."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    clock = ManualClock(wall=NOW)
    server = Server(FakeRegistry([FakeControl("shop", clock=clock)]), port=0, clock=clock)
    thread = threading.Thread(target=server.run)
    thread.start()
    found = filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=next(found), args=["--no-sandbox", "--disable-dev-shm-usage"]
            )
            for name, (path, scheme, width, height) in PICTURES.items():
                context = browser.new_context(
                    base_url=server.url,
                    color_scheme="dark" if scheme == "dark" else "light",
                    timezone_id="UTC",
                    viewport={"width": width, "height": height},
                )
                take(context.new_page(), path, folder / f"{name}.png", clock)
                context.close()
            browser.close()
    finally:
        server.stop()
        thread.join()


def take(page: Page, path: str, target: Path, clock: ManualClock) -> None:
    """Open a view, let a minute go by for its charts, and take its picture."""
    page.goto(path)
    for _ in range(60 if page.locator(".chart").count() else 1):
        clock.advance(1.0)
        page.reload()
    expect(page.locator("#part")).to_be_visible()
    page.wait_for_timeout(300)
    page.screenshot(path=target)
    print(f"wrote {target}")


if __name__ == "__main__":
    main()
