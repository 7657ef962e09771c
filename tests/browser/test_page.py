"""The page in a real browser: as people use it, and as hostile texts would."""

import pytest
from playwright.sync_api import Browser, Page, expect

from sparkstorm.testing import wait_until
from sparkstorm.testing.control import FakeControl

pytestmark = pytest.mark.e2e

SHOP = "/topologies/shop-7f3a"
HOSTILE = "/topologies/hostile-7f3a"


def live(page: Page, path: str) -> None:
    """Open a view, and wait for its first event: then all scripts have run."""
    page.goto(path)
    expect(page.locator("#freshness")).to_have_text("live")
    wait_until(lambda: page.evaluate("typeof source !== 'undefined' && source?.readyState === 1"))


# --- which message, which bolt, which line -------------------------------------------------------


def test_from_the_first_page_to_the_line_that_fails(page: Page) -> None:
    """Three clicks: the topology, its oldest message, and there is the line."""
    page.goto("/")
    page.get_by_role("link", name="shop", exact=True).click()
    page.get_by_role("link", name="orders-0:18204").first.click()
    expect(page.locator("#attempt-2 .frame").first).to_contain_text("shop/bolts.py:41 in execute")
    expect(page.locator("#attempt-1")).to_be_visible()  # side by side
    first, second = (page.locator(f"#attempt-{number}").bounding_box() for number in (1, 2))
    assert first is not None
    assert second is not None
    assert first["y"] == second["y"]
    page.locator("#attempt-2").get_by_text("parse → enrich[7]").click()
    expect(page.locator("#attempt-2 .tree .why").first).to_contain_text("KeyError")


def test_the_graph_shows_busy_and_failing_bolts(page: Page) -> None:
    """A bolt of the graph leads to its page."""
    live(page, SHOP)
    node = page.locator(".graph a.node", has_text="enrich")
    expect(node).to_contain_text("85 % busy")
    expect(node).to_contain_text("2 % fail")
    node.click()
    expect(page.get_by_role("heading", name="enrich")).to_be_visible()


def test_a_waiting_message_is_retried_now(page: Page, shop: FakeControl) -> None:
    """The button gives the order; the row shows what came of it, without a reload."""
    live(page, f"{SHOP}/messages")
    row = page.locator("#message-1")
    row.get_by_role("button", name="Retry now").click()
    expect(page.locator("#notice")).to_contain_text("1 message will be tried in the next batch")
    expect(row).to_contain_text("running")
    assert shop.orders == [("retry", ["m00000"])]


def test_a_filter_is_a_url(page: Page) -> None:
    """A choice is applied at once, and the address can be sent to a colleague."""
    page.goto(f"{SHOP}/messages")
    page.get_by_label("State").select_option("open")
    page.wait_for_url("**/messages?state=open*")
    expect(page.locator("#part .badge.open").first).to_be_visible()
    expect(page.locator("#part .badge.retry")).to_have_count(0)


def test_why_is_my_offset_stuck(page: Page) -> None:
    """The answer is a sentence, and a link to the message."""
    live(page, f"{SHOP}/partitions")
    stuck = page.locator(".partition", has_text="orders-0").first
    expect(stuck).to_contain_text("The message at offset 18204 failed in enrich")
    stuck.get_by_role("link", name="Message at 18204").click()
    expect(page.locator("#message-1")).to_contain_text("orders-0:18204")


# --- dead letters --------------------------------------------------------------------------------


def test_letters_are_chosen_and_replayed(page: Page, shop: FakeControl) -> None:
    """A choice survives that the page is kept fresh; what did not go is listed."""
    live(page, f"{SHOP}/letters?group=enrich-key")
    for number in (1, 3, 6):
        page.locator(f"#letter-{number} input[type=checkbox]").check()
    shop.follow("anything")
    wait_until(lambda: page.evaluate("source?.readyState === 1"))
    page.evaluate("refresh(part.innerHTML)")
    page.get_by_role("button", name="Replay chosen").click()
    expect(page.locator("#notice")).to_contain_text("replay-1 is on its way")
    order = shop.orders[-1]
    assert order == ("replay", ["enrich-key-000", "enrich-key-002", "enrich-key-005"], None, None)
    page.locator("summary", has_text="1").first.click()
    expect(page.locator("#part")).to_contain_text("the source no longer has the payload")


def test_all_letters_of_a_kind_are_discarded_after_a_question(
    page: Page, shop: FakeControl
) -> None:
    """Who says no has given no order."""
    live(page, f"{SHOP}/letters")
    row = page.locator("tr", has_text="JSONDecodeError").first
    page.once("dialog", lambda dialog: dialog.dismiss())
    row.get_by_role("button", name="Discard all").click()
    assert shop.orders == []
    page.once("dialog", lambda dialog: dialog.accept())
    row.get_by_role("button", name="Discard all").click()
    expect(page.locator("#notice")).to_contain_text("7 dead letters removed")


def test_a_letter_is_edited_and_replayed(page: Page, shop: FakeControl) -> None:
    """A mistake in the JSON is told at the form, and what was typed stays."""
    page.goto(f"{SHOP}/letter?id=enrich-key-001")
    field = page.locator("textarea[name='value:n']")
    field.fill("4 2")
    page.get_by_role("button", name="Replay").click()
    expect(page.locator("#notice")).to_contain_text("is no JSON")
    expect(field).to_have_value("4 2")
    field.fill("42")
    page.get_by_role("button", name="Replay").click()
    expect(page.locator("#notice")).to_contain_text("is on its way")
    assert shop.orders[-1][3]["n"] == 42


# --- fresh, offline, by keyboard, on a phone -----------------------------------------------------


def test_the_page_keeps_fresh_what_changes_and_leaves_the_rest(page: Page) -> None:
    """Figures move; a traceback that somebody has opened stays open, and so does the place."""
    live(page, SHOP)
    acked = page.locator(".tile", has_text="Acked").locator("strong")
    before = acked.inner_text()
    expect(acked).not_to_have_text(before)
    live(page, f"{SHOP}/message?id=m00000")
    details = page.locator("#attempt-1 > .exception details")
    details.locator("summary").click()
    page.evaluate("window.seen = 0; source.addEventListener('part', () => window.seen++)")
    wait_until(lambda: page.evaluate("window.seen > 1"))
    assert details.get_attribute("open") is not None


def test_a_hidden_page_gives_its_connection_back(page: Page) -> None:
    """A browser has six connections for all its tabs."""
    live(page, SHOP)
    page.evaluate(
        """Object.defineProperty(document, 'hidden', {value: true, configurable: true});
        document.dispatchEvent(new Event('visibilitychange'))"""
    )
    wait_until(lambda: page.evaluate("source === null"))
    page.evaluate(
        """Object.defineProperty(document, 'hidden', {value: false});
        document.dispatchEvent(new Event('visibilitychange'))"""
    )
    wait_until(lambda: page.evaluate("source?.readyState === 1"))


def test_the_page_says_that_the_driver_is_gone(page: Page, shop: FakeControl) -> None:
    """Its last known state stays, without anybody reloading."""
    live(page, f"{SHOP}/messages")
    shop.gone = True
    expect(page.get_by_role("alert")).to_contain_text("has ended, or does not answer")
    expect(page.locator("#message-1")).to_contain_text("orders-0:18204")


def test_everything_is_reached_by_keys(page: Page) -> None:
    """Tabs by a letter, rows by j and k, the filter by a slash."""
    live(page, SHOP)
    page.keyboard.press("m")
    page.wait_for_url("**/messages")
    live(page, f"{SHOP}/messages")
    page.keyboard.press("/")
    expect(page.locator("[data-filter]")).to_be_focused()
    page.keyboard.type("mm")  # a letter within a field is no shortcut
    expect(page.locator("[data-filter]")).to_have_value("mm")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("j")
    expect(page.locator("#message-2 a.main")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/message?id=m00001")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()


VIEWS = (
    "",
    "/messages",
    "/message?id=m00000",
    "/letters?group=enrich-key",
    "/letter?id=enrich-key-001",
    "/partitions",
    "/batches",
    "/ackers",
    "/component?id=enrich",
    "/configuration",
    "/logs",
)


def test_every_view_fits_a_phone(browser: Browser, url: str) -> None:
    """Nothing is wider than the screen; wide things scroll by themselves."""
    context = browser.new_context(base_url=url, viewport={"width": 360, "height": 740})
    page = context.new_page()
    for topology in (SHOP, HOSTILE):
        for view in VIEWS:
            live_or_still(page, topology + view)
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= 360, (topology, view, width)
    context.close()


def live_or_still(page: Page, path: str) -> None:
    page.goto(path)
    wait_until(lambda: page.evaluate("typeof draw === 'function'"))


def test_text_can_be_read_in_light_and_dark(browser: Browser, url: str) -> None:
    """The contrast of text is 4.5 at least, as WCAG asks for."""
    for scheme in ("light", "dark"):
        context = browser.new_context(base_url=url, color_scheme=scheme)
        page = context.new_page()
        for view in VIEWS:
            live_or_still(page, SHOP + view)
            assert page.evaluate(LOW_CONTRAST) == [], (scheme, view)
        context.close()


LOW_CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((part) => part / 255).map(
      (c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const back = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const found = parse(getComputedStyle(one).backgroundColor);
      if (found.length < 4 || found[3] > 0.5) return found;
    }
    return [255, 255, 255];
  };
  const low = new Set();
  const texts = "#part *:not(svg *, .chart *), header *, footer *";
  for (const element of document.querySelectorAll(texts)) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.checkVisibility()) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(back(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) low.add(`${element.tagName}.${element.className} ${contrast.toFixed(1)}`);
  }
  return [...low];
}"""


def test_forms_work_without_scripts(browser: Browser, url: str, shop: FakeControl) -> None:
    """Then the answer is a page of its own."""
    context = browser.new_context(base_url=url, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{SHOP}/messages")
    page.locator("#message-1").get_by_role("button", name="Retry now").click()
    expect(page.locator("main")).to_contain_text("1 message will be tried")
    assert shop.orders == [("retry", ["m00000"])]
    context.close()


# --- hostile texts -------------------------------------------------------------------------------


def test_hostile_texts_run_nothing(page: Page) -> None:
    """Not when a view is drawn, nor when it is kept fresh, nor in charts, dialogs and notices."""
    for view in VIEWS:
        live_or_still(page, HOSTILE + view)
        if page.locator("#part[data-live]").count():
            page.evaluate(
                """source.close(); source = null; listen(); window.seen = 0;
                source.addEventListener('part', () => window.seen++)"""
            )
            wait_until(lambda: page.evaluate("window.seen > 0"))
        assert page.evaluate("window.broken") is None, view
    page.goto(f"{HOSTILE}/messages")
    page.get_by_label("Text").fill("<img src=x onerror=window.broken=9>")
    page.get_by_role("button", name="Follow").click()
    expect(page.locator("#notice")).to_contain_text("<img src=x")
    assert page.evaluate("window.broken") is None


def test_the_policy_stops_a_script_that_got_in(page: Page, faults: list[str]) -> None:
    """Even markup in the page could run nothing."""
    live(page, SHOP)
    page.evaluate(
        """part.insertAdjacentHTML('beforeend', '<img src=x onerror="window.broken=1">');
        const script = document.createElement('script');
        script.textContent = 'window.broken = 2';
        part.append(script)"""
    )
    # The handler and the script; each question to the page lets its console be heard.
    wait_until(
        lambda: page.evaluate("1") and sum("Content Security Policy" in one for one in faults) == 2
    )
    assert page.evaluate("window.broken") is None
    faults[:] = [one for one in faults if "Content Security Policy" not in one]
