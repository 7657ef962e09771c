"""The application: pages, REST and checks put together."""

import threading
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from sparkstorm._version import __version__
from sparkstorm.clock import Clock, SystemClock
from sparkstorm.ui.fleet import Fleet
from sparkstorm.ui.pages.live import Easel
from sparkstorm.ui.pages.rendering import Renderer
from sparkstorm.ui.pages.routes import pages_of
from sparkstorm.ui.registry import Registry
from sparkstorm.ui.safety import Gate, Keys

__all__ = ["make_app"]


def make_app(
    registry: Registry,
    *,
    token: str | None = None,
    hosts: Collection[str] = (),
    clock: Clock | None = None,
) -> FastAPI:
    """Return the web page and the REST interface as an ASGI application.

    Args:
        registry: knows the running topologies.
        token: whoever has it may look and steer; None lets everybody in who reaches loopback.
        hosts: names under which the page may be opened, besides loopback's.
        clock: the time; tests pass a manual one.
    """
    clock = clock or SystemClock()
    fleet = Fleet(registry, clock)
    keys = None if token is None else Keys(token, clock)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        stop = threading.Event()
        keeper = threading.Thread(target=fleet.keep, args=[stop], name="keeper", daemon=True)
        keeper.start()
        try:
            yield
        finally:
            stop.set()

    app = FastAPI(
        title="sparkstorm",
        version=__version__,
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.include_router(pages_of(fleet, Renderer(clock), Easel(clock), keys))
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"))
    app.add_middleware(Gate, hosts=hosts, keys=keys)
    return app
