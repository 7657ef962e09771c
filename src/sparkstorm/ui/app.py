"""The application: pages, REST and checks put together."""

import threading
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from sparkstorm._version import __version__
from sparkstorm.clock import Clock, SystemClock
from sparkstorm.errors import SparkstormError
from sparkstorm.ui.answers import Answer, Fault, fault_of
from sparkstorm.ui.fleet import Fleet
from sparkstorm.ui.health import ROUTER as HEALTH
from sparkstorm.ui.pages.live import Easel
from sparkstorm.ui.pages.rendering import Renderer
from sparkstorm.ui.pages.routes import pages_of
from sparkstorm.ui.registry import Registry
from sparkstorm.ui.rest import LOOK, STEER
from sparkstorm.ui.safety import Gate, Keys
from sparkstorm.ui.storm.routes import ROUTER as STORM

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
        token: lets its holder look and steer; None lets in everybody who reaches loopback.
        hosts: more names of this server, besides loopback's.
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
    app.state.fleet = fleet
    app.state.ended = lambda: False
    for router in (STORM, LOOK, STEER, HEALTH):
        app.include_router(router)
    app.add_exception_handler(SparkstormError, _refused)
    app.add_exception_handler(RequestValidationError, _misfit)
    app.add_exception_handler(HTTPException, _unread)
    app.include_router(pages_of(fleet, Renderer(clock), Easel(clock), keys))
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"))
    app.add_middleware(Gate, hosts=hosts, keys=keys)
    return app


def _refused(request: Request, error: Exception) -> Answer:
    """Answer a REST request that was refused, with a sentence."""
    if not isinstance(error, SparkstormError):
        raise error
    status, fault = fault_of(error)
    return Answer(fault, status)


def _unread(request: Request, error: Exception) -> Answer:
    """Answer a request without a route, or an unreadable request, in the shape of all answers."""
    if not isinstance(error, HTTPException):
        raise error
    title = HTTPStatus(error.status_code).phrase
    return Answer(Fault(error=title, errorMessage=str(error.detail)), error.status_code)


def _misfit(request: Request, error: Exception) -> Answer:
    """Answer a REST request with a parameter that does not fit; name the parameter."""
    if not isinstance(error, RequestValidationError):
        raise error
    texts = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
    return Answer(Fault(error="Unprocessable Content", errorMessage="; ".join(texts)), 422)
