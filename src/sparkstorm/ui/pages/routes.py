"""The addresses of the pages."""

from collections.abc import Callable
from typing import final

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from sparkstorm.errors import SparkstormError
from sparkstorm.ui.answers import NotThereError, fault_of
from sparkstorm.ui.fleet import Fleet
from sparkstorm.ui.pages.actions import ACTIONS, Form
from sparkstorm.ui.pages.live import Easel, events
from sparkstorm.ui.pages.rendering import Page, Renderer
from sparkstorm.ui.pages.views import VIEWS, topologies
from sparkstorm.ui.safety import Keys, opened
from sparkstorm.ui.watch import Watch

__all__ = ["pages_of"]


def pages_of(fleet: Fleet, renderer: Renderer, easel: Easel, keys: Keys | None) -> APIRouter:
    """Return the routes of all pages."""
    desk = _Desk(fleet, renderer, easel, keys)
    router = APIRouter(include_in_schema=False)
    router.add_api_route("/", desk.all, methods=["GET"])
    router.add_api_route("/login", desk.door, methods=["GET"])
    router.add_api_route("/login", desk.enter, methods=["POST"])
    router.add_api_route("/topologies/{topology}", desk.view, methods=["GET"])
    router.add_api_route("/topologies/{topology}/{view}", desk.view, methods=["GET"])
    router.add_api_route("/topologies/{topology}/orders/{order}", desk.order, methods=["POST"])
    return router


@final
class _Desk:
    """Answers requests for pages."""

    def __init__(self, fleet: Fleet, renderer: Renderer, easel: Easel, keys: Keys | None) -> None:
        self._fleet = fleet
        self._renderer = renderer
        self._easel = easel
        self._keys = keys

    async def all(self, request: Request) -> Response:
        """Show all topologies."""
        return await self._show(request, lambda: topologies(self._fleet))

    async def view(self, request: Request, topology: str, view: str = "") -> Response:
        """Show a view of a topology."""

        def build() -> Page:
            if view not in VIEWS:
                raise NotThereError("There is no such page.")
            return VIEWS[view](self._watch(topology), request.query_params)

        return await self._show(request, build)

    async def door(self, request: Request) -> Response:
        """Ask for the token."""
        return await self._show(
            request, lambda: Page(title="Token", part="login.html", live=False)
        )  # fmt: skip

    async def enter(self, request: Request) -> Response:
        """Take a token, and open a session."""
        form = await request.form()
        token = form.get("token")
        if self._keys is None or (isinstance(token, str) and self._keys.fits(token)):
            home = RedirectResponse("/", 303)
            host = request.headers.get("host", "")
            return home if self._keys is None else opened(self._keys, host, "/")
        return await self._show(
            request,
            lambda: Page(
                title="Token", part="login.html", facts={"wrong": True}, live=False, status=403
            ),
        )

    async def order(self, request: Request, topology: str, order: str) -> Response:
        """Give an order, and say in a sentence what came of it."""
        form = await request.form()
        given = [*request.query_params.multi_items(), *form.multi_items()]
        fields = Form([(name, one) for name, one in given if isinstance(one, str)])

        def give() -> Page:
            try:
                if order not in ACTIONS:
                    raise NotThereError("There is no such order.")
                said = ACTIONS[order](self._watch(topology), fields)
            except SparkstormError as error:
                return _notice(topology, str(error), fault_of(error)[0])
            return _notice(topology, said)

        page = await run_in_threadpool(give)
        self._easel.forget()
        if "hx-request" in request.headers:
            return HTMLResponse(self._renderer.part(page), page.status)
        return self._whole(page, self._renderer.part(page))

    def _watch(self, topology: str) -> Watch:
        watch = self._fleet.watch(topology)
        if watch is None:
            raise NotThereError("There is no such topology, or it ended before this page saw it.")
        return watch

    async def _show(self, request: Request, build: Callable[[], Page]) -> Response:
        """Answer with the page, or with the events that keep its part fresh."""
        pages: list[Page] = []

        def draw() -> str:
            page = _attempt(build)
            pages[:] = [page]
            return self._renderer.part(page)

        if "text/event-stream" in request.headers.get("accept", ""):
            address = f"{request.url.path}?{request.url.query}"
            stream = events(lambda: self._easel.part(address, draw), ended=request.app.state.ended)
            return StreamingResponse(stream, media_type="text/event-stream")
        part = await run_in_threadpool(draw)
        return self._whole(pages[0], part)

    def _whole(self, page: Page, part: str) -> Response:
        response = HTMLResponse(self._renderer.whole(page, part), page.status)
        response.headers["Vary"] = "Accept"  # the same address has events, too
        return response


def _attempt(build: Callable[[], Page]) -> Page:
    try:
        return build()
    except SparkstormError as error:
        status, fault = fault_of(error)
        return Page(
            title=fault.error,
            part="fault.html",
            facts={"fault": fault},
            status=status,
            live=status == 503,
        )


def _notice(topology: str, text: str, status: int = 200) -> Page:
    return Page(
        title="Done" if status == 200 else "Refused",
        part="notice.html",
        facts={"text": text},
        topology=topology,
        live=False,
        status=status,
    )
