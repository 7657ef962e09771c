"""The pages: what they show and order, without a browser; hostile texts stay texts."""

import json
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from sparkstorm.control.views import MessageView
from sparkstorm.testing import ManualClock
from sparkstorm.testing.control import FakeControl, FakeRegistry
from sparkstorm.testing.control.hostile import HOSTILE
from sparkstorm.ui import make_app
from sparkstorm.ui.pages.live import Easel, events
from sparkstorm.ui.pages.views import VIEWS

SHOP = "/topologies/shop-7f3a"
HOSTILE_ONE = "/topologies/hostile-7f3a"

VIEWS_SHOWN = [
    "",
    "/messages",
    "/message?id=m00000",
    "/message?id=m00001",
    "/letters",
    "/letters?group=enrich-key",
    "/letter?id=enrich-key-001",
    "/letter?id=enrich-key-005",
    "/partitions",
    "/batches",
    "/ackers",
    "/component?id=enrich",
    "/component?id=orders",
    "/configuration",
    "/logs?level=ERROR",
]


class Elements(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def shown(client: TestClient, address: str) -> Elements:
    response = client.get(address)
    assert response.status_code == 200, response.text
    return Elements(response.text)


def test_every_view_is_among_those_tried() -> None:
    """A new view must be tried with hostile texts as well."""
    tried = {one.lstrip("/").split("?")[0] for one in VIEWS_SHOWN}
    assert tried == set(VIEWS)


@pytest.mark.parametrize("view", VIEWS_SHOWN)
def test_hostile_texts_stay_texts(reader: TestClient, view: str) -> None:
    """No text makes an element, an attribute, a script or an address outside of the page."""
    page = shown(reader, HOSTILE_ONE + view)
    assert len(page.all("script")) == 4
    assert page.all("img") == page.all("iframe") == page.all("style") == []
    for tag, attributes in page.found:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in ("href", "src", "action", "formaction", "hx-post", "hx-get"):
            address = attributes.get(name) or "/"
            assert address.startswith(("/", "#")), (tag, address)
            assert not address.startswith("//")
    assert "49" not in {one.strip() for one in page.text.split()}  # {{ 7 * 7 }}


PARAMETERS = {
    "messages": ["state", "spout", "component", "name"],
    "message": ["id"],
    "letters": ["group", "offset"],
    "letter": ["id"],
    "component": ["id", "window"],
    "logs": ["component", "message", "level"],
}


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("view", "name"), [(view, name) for view, names in PARAMETERS.items() for name in names]
)
def test_hostile_addresses_do_no_harm(reader: TestClient, view: str, name: str) -> None:
    """A parameter may be anything."""
    for text in HOSTILE:
        query = f"{name}={quote(text, safe='', errors='replace')}"
        response = reader.get(f"{SHOP}/{view}?{query}")
        assert response.status_code in (200, 404)
        assert "<script>" not in response.text


@pytest.mark.parametrize("text", [one for one in HOSTILE if one.strip() not in ("", "..")])
def test_a_hostile_topology_id_is_not_found(reader: TestClient, text: str) -> None:
    """It leads to no file and no other topology."""
    response = reader.get(f"/topologies/{quote(text, safe='', errors='replace')}/messages")
    assert response.status_code == 404
    assert "root:" not in response.text


def test_static_files_are_those_of_the_package(reader: TestClient) -> None:
    """Nobody climbs out of the folder."""
    assert reader.get("/static/page.js").status_code == 200
    for path in ("..%2fapp.py", "%2e%2e/app.py", "vendor/..%2f..%2fapp.py", "/etc/passwd"):
        assert reader.get(f"/static/{path}").status_code == 404


def test_the_page_loads_nothing_from_elsewhere(reader: TestClient) -> None:
    """It works without a network."""
    page = shown(reader, SHOP)
    sources = [one["src"] for one in page.all("script")] + [one["href"] for one in page.all("link")]
    for source in sources:
        assert source is not None
        assert reader.get(source).status_code == 200


def test_the_overview_leads_to_the_oldest_message(reader: TestClient) -> None:
    """Which message, which bolt, why: at the first look."""
    page = shown(reader, SHOP)
    assert "orders-0:18204" in page.text
    assert "KeyError: 'sku-8812'" in page.text
    hrefs = [one.get("href") for one in page.all("a")]
    assert f"{SHOP}/message?id=m00000" in hrefs
    assert f"{SHOP}/component?id=enrich" in hrefs


def test_a_message_shows_the_line_in_the_users_own_file(reader: TestClient) -> None:
    """Both attempts are there, each with its exception, tree and lines."""
    page = shown(reader, f"{SHOP}/message?id=m00000")
    assert page.text.count("shop/bolts.py:41 in execute") >= 2
    assert "Attempt 1" in page.text
    assert "Attempt 2" in page.text
    assert "no price for" in page.text


def test_messages_can_be_filtered_by_their_address(reader: TestClient) -> None:
    """Each view is a URL."""
    page = shown(reader, f"{SHOP}/messages?state=open&spout=orders")
    assert "orders-0" in page.text
    assert "click-" not in page.text
    assert "Retry now" not in page.text


def test_stuck_partitions_come_first(reader: TestClient) -> None:
    """Whoever has hundreds of partitions looks for those."""
    page = reader.get(f"{SHOP}/partitions").text
    places = [page.index(f"orders / orders-{number}") for number in (2, 0, 1, 4, 3)]
    assert places == sorted(places)


# --- orders --------------------------------------------------------------------------------------

ORDERS: list[tuple[str, dict[str, Any], tuple[Any, ...]]] = [
    ("activate", {}, ("activate",)),
    ("deactivate", {}, ("deactivate",)),
    ("kill", {}, ("kill", None)),
    ("kill", {"wait_secs": "2.5"}, ("kill", 2.5)),
    ("retry", {"message": ["m00000", "m00003"]}, ("retry", ["m00000", "m00003"])),
    ("follow", {"name": "sku"}, ("follow", "sku", None)),
    ("pause", {"spout": "orders", "partition": "orders-1"}, ("pause", "orders", ["orders-1"])),
    ("resume", {"spout": "orders"}, ("resume", "orders", [])),
    ("level", {"component": "parse", "level": "DEBUG"}, ("set_level", "parse", "DEBUG")),
    ("replay", {"group": "enrich-key"}, ("replay", [], "enrich-key", None)),
    ("discard", {"letter": ["enrich-key-001"]}, ("discard", ["enrich-key-001"], None)),
]


@pytest.mark.parametrize(("order", "fields", "given"), ORDERS)
def test_an_order_reaches_the_driver(
    client: TestClient, shop: FakeControl, order: str, fields: dict[str, Any], given: tuple[Any]
) -> None:
    """The answer is a sentence, as a part of the page for htmx and as a page without it."""
    part = client.post(f"{SHOP}/orders/{order}", data=fields, headers={"HX-Request": "true"})
    assert part.status_code == 200, part.text
    assert shop.orders == [given]
    assert "<html" not in part.text
    page = client.post(f"{SHOP}/orders/{order}", data=fields)
    assert page.status_code == 200
    assert "<html" in page.text


@pytest.mark.parametrize(
    ("order", "fields", "status", "words"),
    [
        ("retry", {}, 400, "No message is chosen"),
        ("kill", {"wait_secs": "soon"}, 400, "no length of time"),
        ("kill", {"wait_secs": "nan"}, 400, "no length of time"),
        ("discard", {}, 400, "No letter is chosen"),
        ("follow", {}, 400, "is empty"),
        ("level", {"component": "parse", "level": "<b>"}, 400, "no level"),
        ("resume", {"spout": "nobody"}, 400, "no spout"),
        ("explode", {}, 404, "no such order"),
        ("replay", {"letter": "enrich-key-001", "value:n": "{"}, 400, "is no JSON"),
        ("replay", {"letter": "enrich-key-001", "value:n": "NaN"}, 400, "is no JSON"),
        ("replay", {"letter": "enrich-key-001", "value:n": "[" * 100_000}, 400, "is no JSON"),
        ("replay", {"letter": "gone", "value:n": "1"}, 404, "no longer there"),
    ],
)
def test_a_bad_order_is_refused_in_words(
    client: TestClient, order: str, fields: dict[str, str], status: int, words: str
) -> None:
    """The text says what is wrong."""
    response = client.post(f"{SHOP}/orders/{order}", data=fields)
    assert response.status_code == status
    assert words in response.text
    assert "<b>" not in response.text


def test_a_letter_is_edited_for_its_replay(client: TestClient, shop: FakeControl) -> None:
    """All fields are sent, as JSON; what nobody changed is no edit."""
    page = shown(client, f"{SHOP}/letter?id=enrich-key-001")
    names = [one["name"] for one in page.all("textarea")]
    assert names == ["value:order", "value:n"]
    letter = shop.letter("enrich-key-001")
    assert letter is not None
    assert letter.values is not None
    same = {f"value:{name}": json.dumps(value) for name, value in letter.values.items()}
    client.post(f"{SHOP}/orders/replay", data={"letter": letter.id, **same})
    client.post(f"{SHOP}/orders/replay", data={"letter": "enrich-key-003", **same, "value:n": "7"})
    values = {**letter.values, "n": 7}
    assert shop.orders == [
        ("replay", ["enrich-key-001"], None, None),
        ("replay", ["enrich-key-003"], None, values),
    ]


def test_a_replay_says_what_did_not_go(client: TestClient) -> None:
    """A letter without a payload stays, with the reason."""
    client.post(f"{SHOP}/orders/replay", data={"group": "enrich-key"})
    page = shown(client, f"{SHOP}/letters")
    assert "replay-1" in page.text
    assert "the source no longer has the payload" in page.text


def test_a_followed_text_can_be_any(client: TestClient, shop: FakeControl) -> None:
    """A browser changes line ends within a form, so the text stands in the form's address."""
    shop.follow("two\nlines & <b>")
    page = shown(client, f"{SHOP}/messages")
    actions = [one.get("action") or "" for one in page.all("form")]
    (stop,) = [one for one in actions if "unfollow" in one]
    assert client.post(stop).status_code == 200
    assert shop.followed() == []


# --- the driver's end ----------------------------------------------------------------------------


def test_the_last_state_is_shown_when_the_driver_is_gone(registry: FakeRegistry) -> None:
    """The page says so, and offers no orders that nobody would take."""
    clock = ManualClock()
    client = TestClient(make_app(registry, clock=clock), base_url="http://localhost")
    assert "orders-0:18204" in shown(client, f"{SHOP}/messages").text
    registry.controls["shop-7f3a"].gone = True
    clock.advance(90)
    page = shown(client, f"{SHOP}/messages")
    assert "orders-0:18204" in page.text
    assert "has ended, or does not answer" in page.text
    assert "1 min ago" not in page.text  # 90 seconds
    assert "Retry now" not in page.text
    response = client.post(f"{SHOP}/orders/activate")
    assert response.status_code == 503
    assert "has ended" in response.text


def test_a_topology_that_never_answered_is_listed(
    registry: FakeRegistry, shop: FakeControl
) -> None:
    """Its pages say why they are empty."""
    shop.gone = True
    client = TestClient(make_app(registry), base_url="http://localhost")
    assert "has never answered" in shown(client, "/").text
    assert client.get(SHOP).status_code == 503


# --- live parts ----------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_hundred_readers_cost_one_drawing_a_second() -> None:
    """All who look at an address share its drawing."""
    clock, drawn = ManualClock(), []

    def draw() -> str:
        drawn.append(clock.monotonic())
        return "part"

    easel = Easel(clock)
    for second in range(3):
        for _ in range(100):
            assert await easel.part("/x", draw) == "part"
        clock.advance(1.0)
        assert len(drawn) == second + 1


@pytest.mark.anyio
async def test_an_event_is_sent_for_a_change_only() -> None:
    """Then nothing but a sign of life, so that no proxy cuts the line."""
    texts = iter(["a", "a", "b\n\ndata: forged", *["c"] * 40])

    async def part() -> str:
        return next(texts)

    stream = events(part, pause_secs=0.0)
    assert await anext(stream) == "event: part\ndata: a\n\n"
    assert await anext(stream) == "event: part\ndata: b\ndata: \ndata: data: forged\n\n"
    await stream.aclose()  # type: ignore[attr-defined]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def test_a_message_name_is_no_template(reader: TestClient) -> None:
    """Texts are facts of a template, never a part of one."""
    names = [one.name for one in messages_of_hostile()]
    assert "{{ 7 * 7 }}{% raw %}${7*7}" in names
    assert "{{ 7 * 7 }}{% raw %}" in shown(reader, f"{HOSTILE_ONE}/messages").text


def messages_of_hostile() -> list[MessageView]:
    return FakeControl("hostile", hostile=True).messages().messages
