"""Safety: who may ask, from where, and what a page may do in a browser.

Without checks, any site in the user's browser could use a page on loopback. So three checks guard
each request: the host must be one of the server's names, never a foreign name rebound to loopback;
an order must come from the server's own page (``Origin``); and beyond loopback a token is needed.
The server exchanges the token for a cookie that only the same site may send.
"""

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import final
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparkstorm.clock import Clock

__all__ = ["Gate", "Keys", "is_loopback", "opened"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing inline, and nothing from other sites: text that became markup could still do nothing."""

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # "no-referrer" would make a browser hide the origin of our own forms, too.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_SESSION_SECS = 7 * 86_400
_SAFE = ("GET", "HEAD", "OPTIONS")
_OPEN = ("/livez", "/login", "/static/")
"""Paths without a token: they tell nothing of any topology."""


def is_loopback(host: str) -> bool:
    """Return whether a host's name or address leads to this machine alone.

    >>> [is_loopback(one) for one in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "example.com")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@final
@dataclass(frozen=True, slots=True)
class Keys:
    """The token, and its sessions, which end with this process.

    Attributes:
        token: the secret that opens a session.
        clock: tells when a session ends.
    """

    token: str
    clock: Clock
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def fits(self, token: str) -> bool:
        """Return whether a text is the token."""
        return hmac.compare_digest(token.encode(errors="replace"), self.token.encode())

    def session(self) -> str:
        """Return a new session, to be kept in a cookie."""
        until = str(int(self.clock.wall() + _SESSION_SECS))
        return f"{until}.{self._sign(until)}"

    def knows(self, session: str) -> bool:
        """Return whether a text is a session of this process that has not ended."""
        until, _, signature = session.partition(".")
        signed = hmac.compare_digest(signature.encode(errors="replace"), self._sign(until).encode())
        return signed and until.isascii() and until.isdigit() and int(until) > self.clock.wall()

    def _sign(self, text: str) -> str:
        return hmac.new(self._key, text.encode(errors="replace"), hashlib.sha256).hexdigest()


@final
class Gate:
    """Lets requests pass to an application, or refuses them; sets the headers of all answers."""

    def __init__(self, app: ASGIApp, *, hosts: Collection[str], keys: Keys | None) -> None:
        self._app = app
        self._hosts = frozenset(host.lower().rstrip(".") for host in hosts)
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if not scope["path"].startswith("/static/"):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        answer = self._refusal(scope) or self._exchange(scope)
        await (answer or self._app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._is_ours(host):
            return PlainTextResponse(
                "This name is not one of the page's. Open the page by its address, or start it "
                "with --allow-host NAME.",
                421,
            )
        if scope["method"] not in _SAFE and not _is_same_origin(headers, host):
            return PlainTextResponse("Orders are taken from the page itself only.", 403)
        if len(headers.getlist("host")) > 1:
            return PlainTextResponse("One host, please.", 400)
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        except ValueError:
            return False
        if name in self._hosts:
            return True
        if self._keys is None:
            return is_loopback(name)
        try:  # nobody can rebind an address
            ipaddress.ip_address(name)
        except ValueError:
            return name == "localhost"
        return True

    def _exchange(self, scope: Scope) -> Response | None:
        """Return the answer to a request without a session; None if the request may pass."""
        path: str = scope["path"]
        if self._keys is None or path.startswith(_OPEN):
            return None
        headers = Headers(scope=scope)
        cookie = cookie_name(headers.get("host", ""))
        if self._keys.knows(_cookie(headers, cookie)):
            return None
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._keys.fits(bearer.strip()):
            return None
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = query.pop("token", [""])[0]
        if scope["method"] == "GET" and self._keys.fits(token):
            left = urlencode(query, doseq=True)
            then = _local(path) + (f"?{left}" if left else "")
            return opened(self._keys, headers.get("host", ""), then)
        if path.startswith(("/api/", "/metrics", "/readyz", "/openapi.json")):
            return PlainTextResponse(
                "A token is needed: Authorization: Bearer TOKEN.",
                401,
                {"WWW-Authenticate": "Bearer"},
            )
        return RedirectResponse("/login", 303)


def opened(keys: Keys, host: str, then: str) -> Response:
    """Return an answer that opens a session, and leads to a page of this server."""
    response = RedirectResponse(then, 303)
    response.set_cookie(
        cookie_name(host),
        keys.session(),
        max_age=_SESSION_SECS,
        httponly=True,
        samesite="strict",
        path="/",
    )
    return response


def cookie_name(host: str) -> str:
    """Return the cookie's name: cookies do not tell ports apart, so the name must.

    >>> cookie_name("localhost:8080")
    'sparkstorm_8080'
    """
    port = host.rpartition(":")[2]
    return f"sparkstorm_{port if port.isascii() and port.isdigit() else 80}"


def _local(path: str) -> str:
    """Return a path that cannot name another host."""
    return "/" + path.lstrip("/\\") if path.isascii() and path.isprintable() else "/"


def _cookie(headers: Headers, name: str) -> str:
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[name].value if name in cookies else ""


def _is_same_origin(headers: Headers, host: str) -> bool:
    """Return whether an order comes from this server's page, or from no browser at all."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    return origin is None or origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())
