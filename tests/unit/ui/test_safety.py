"""Who may ask, and from where."""

import pytest
from starlette.testclient import TestClient

from sparkstorm.errors import ConfigError, WorldError
from sparkstorm.testing import ManualClock
from sparkstorm.testing.control import FakeControl, FakeRegistry
from sparkstorm.ui import Server, make_app
from sparkstorm.ui.safety import Keys

TOKEN = "a token of many letters"  # noqa: S105 - of this test
KILL = "/api/v1/topology/shop-7f3a/kill/0"


@pytest.fixture
def guarded(registry: FakeRegistry) -> TestClient:
    app = make_app(registry, token=TOKEN, hosts=["shop.example"])
    return TestClient(app, base_url="http://shop.example:8642", follow_redirects=False)


# --- loopback ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1:8642", "[::1]:8642", "LOCALHOST:1", "localhost.", "127.0.0.9"]
)
def test_loopback_has_several_names(reader: TestClient, host: str) -> None:
    """All of them are this machine."""
    assert reader.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "[",
        "0.0.0.0",  # noqa: S104
        "127.0.0.1.evil.example",
        "192.168.0.1",
        "2130706433",
        "evil.example:80",
        "localhost.evil.example",
        "localhost@evil.example",
    ],
)
def test_a_rebound_name_is_refused(reader: TestClient, host: str) -> None:
    """A foreign page whose name leads to loopback reads nothing."""
    response = reader.get("/", headers={"Host": host})
    assert response.status_code == 421
    assert "shop" not in response.text


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:9999"},
        {"Origin": "http://localhost.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost"},
    ],
)
@pytest.mark.parametrize("path", [KILL, "/topologies/shop-7f3a/orders/kill"])
def test_orders_of_foreign_pages_are_refused(
    client: TestClient, shop: FakeControl, path: str, headers: dict[str, str]
) -> None:
    """A form on any site could post to loopback; its origin gives it away."""
    assert client.post(path, headers=headers).status_code == 403
    assert shop.orders == []


@pytest.mark.parametrize("headers", [{}, {"Origin": "http://localhost"}])
def test_orders_of_our_page_and_of_tools_are_taken(
    client: TestClient, shop: FakeControl, headers: dict[str, str]
) -> None:
    """A tool such as curl sends no origin; every browser does."""
    assert client.post(KILL, headers=headers).status_code == 200
    assert shop.orders == [("kill", 0.0)]


def test_reading_gives_no_orders(client: TestClient, shop: FakeControl) -> None:
    """An image on a foreign page could ask for any address."""
    for path in (KILL, "/topologies/shop-7f3a/orders/kill"):
        assert client.get(path).status_code in (404, 405)
    assert shop.orders == []


@pytest.mark.parametrize("path", ["/", "/api/v1/topology/summary", "/static/page.js", "/nothing"])
def test_every_answer_forbids_what_is_not_ours(reader: TestClient, path: str) -> None:
    """Even if a text became markup, it could load, send and run nothing."""
    headers = reader.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in policy
    assert "access-control-allow-origin" not in headers


def test_a_refusal_has_the_headers_as_well(reader: TestClient) -> None:
    """It is an answer like any other."""
    headers = reader.get("/", headers={"Host": "evil.example"}).headers
    assert "default-src 'none'" in headers["content-security-policy"]


def test_there_is_no_jsonp(reader: TestClient) -> None:
    """Storm's ``callback`` would let every site read what loopback shows."""
    response = reader.get("/api/v1/topology/summary?callback=read")
    assert response.headers["content-type"] == "application/json"
    assert response.json()["topologies"]


# --- beyond loopback -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/api/v1/topology/summary", "/openapi.json", "/readyz"])
def test_without_a_token_nothing_is_told(guarded: TestClient, path: str) -> None:
    """Tools are told what is missing."""
    response = guarded.get(path)
    assert response.status_code == 401
    assert "shop" not in response.text
    assert guarded.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401
    allowed = guarded.get(path, headers={"Authorization": f"Bearer {TOKEN}"})
    assert allowed.status_code == 200


def test_people_are_led_to_the_door(guarded: TestClient) -> None:
    """Pages lead to the form for the token; orders are not given."""
    response = guarded.get("/topologies/shop-7f3a")
    assert (response.status_code, response.headers["location"]) == (303, "/login")
    assert guarded.get("/login").status_code == 200
    assert guarded.post("/topologies/shop-7f3a/orders/kill").headers["location"] == "/login"
    assert guarded.get("/livez").status_code == 200


def test_the_token_in_the_address_becomes_a_strict_cookie(guarded: TestClient) -> None:
    """The token is gone from the address; the cookie is for this site alone, and no script's."""
    response = guarded.get(
        "/topologies/shop-7f3a/messages", params={"token": TOKEN, "state": "open"}
    )
    assert response.headers["location"] == "/topologies/shop-7f3a/messages?state=open"
    cookie = response.headers["set-cookie"].lower()
    assert cookie.startswith("sparkstorm_8642=")
    for word in ("httponly", "samesite=strict", "path=/"):
        assert word in cookie
    assert TOKEN.replace(" ", "") not in cookie.replace(" ", "")
    assert guarded.get("/topologies/shop-7f3a").status_code == 200


def test_the_door_takes_the_token(guarded: TestClient) -> None:
    """A wrong one leads nowhere."""
    wrong = guarded.post("/login", data={"token": "wrong"})
    assert wrong.status_code == 403
    assert "set-cookie" not in wrong.headers
    right = guarded.post("/login", data={"token": TOKEN})
    assert (right.status_code, right.headers["location"]) == (303, "/")
    assert guarded.get("/").status_code == 200


def test_the_answer_leads_to_no_other_site(guarded: TestClient) -> None:
    """A path that looks like another host stays a path."""
    for path in ("//evil.example/", "/\\evil.example/", "///evil.example"):
        guarded.cookies.clear()
        response = guarded.get(f"http://shop.example:8642{path}?token={TOKEN}")
        assert not response.headers["location"].startswith(("//", "/\\", "http"))


def test_a_host_may_be_an_address_or_a_known_name(guarded: TestClient) -> None:
    """Nobody can rebind an address."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert guarded.get("/", headers=headers | {"Host": "10.1.2.3:8642"}).status_code == 200
    assert guarded.get("/", headers=headers | {"Host": "evil.example"}).status_code == 421


def test_a_session_ends(guarded: TestClient) -> None:
    """A forged, changed or old session is none."""
    clock = ManualClock()
    keys = Keys(TOKEN, clock)
    session = keys.session()
    assert keys.knows(session)
    until, _, signature = session.partition(".")
    for forged in (
        "",
        ".",
        f"{int(until) + 1}.{signature}",
        f"{until}.",
        session + "0",
        "\ud800.x",
    ):
        assert not keys.knows(forged)
    assert not Keys(TOKEN, clock).knows(session)  # another process
    clock.advance(8 * 86_400)
    assert not keys.knows(session)


# --- serving -------------------------------------------------------------------------------------


def test_beyond_loopback_there_is_always_a_token() -> None:
    """Nobody opens the page to all by mistake."""
    server = Server(FakeRegistry([]), "0.0.0.0", 0)  # noqa: S104
    assert server.token is not None
    assert len(server.token) >= 32
    assert f"?token={server.token}" in server.url
    server.close()


def test_a_short_token_is_refused() -> None:
    """It could be guessed."""
    with pytest.raises(ConfigError, match="16 characters"):
        Server(FakeRegistry([]), port=0, token="short")  # noqa: S106


def test_a_taken_port_is_refused_in_words() -> None:
    """The text says how to choose another."""
    with Holding() as port, pytest.raises(WorldError, match=r"cannot be taken.*--port"):
        Server(FakeRegistry([]), port=port)


@pytest.mark.parametrize("host", ["no such host", "x" * 300])
def test_a_host_that_is_none_is_refused(host: str) -> None:
    """The text names it."""
    with pytest.raises(ConfigError, match="no address"):
        Server(FakeRegistry([]), host, 0)


class Holding:
    """A port that somebody else holds."""

    def __enter__(self) -> int:
        self.server = Server(FakeRegistry([]), port=0)
        return self.server.port

    def __exit__(self, *error: object) -> None:
        self.server.close()
