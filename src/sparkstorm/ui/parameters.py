"""The parameters that REST paths share, and how they find what they name."""

from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request

from sparkstorm.control.views import ComponentView, WindowName
from sparkstorm.ui.answers import Fault, NotThereError
from sparkstorm.ui.fleet import Fleet
from sparkstorm.ui.watch import Watch

__all__ = ["FAULTS", "ORDER_FAULTS", "Found", "Listed", "Window", "component_of"]

FAULTS: dict[int | str, dict[str, Any]] = {
    400: {"model": Fault, "description": "The request names nothing, or asks for the impossible."},
    401: {"description": "A token is needed."},
    404: {"model": Fault, "description": "There is no such thing."},
    421: {"description": "The host's name is not one of the page's."},
    422: {"model": Fault, "description": "A parameter does not fit."},
    503: {"model": Fault, "description": "The driver is gone, and the answer was never known."},
}
ORDER_FAULTS = FAULTS | {403: {"description": "The order comes from a foreign page."}}


def _fleet(request: Request) -> Fleet:
    fleet: Fleet = request.app.state.fleet
    return fleet


def _found(
    request: Request, topology: Annotated[str, Path(description="The topology's id.")]
) -> Watch:
    watch = _fleet(request).watch(topology)
    if watch is None:
        raise NotThereError(f"There is no topology {topology!r}: see /api/v1/topology/summary.")
    return watch


Listed = Annotated[Fleet, Depends(_fleet)]
Found = Annotated[Watch, Depends(_found)]
Window = Annotated[
    WindowName, Query(description="Seconds of the window, or `:all-time`, as in Storm.")
]


def component_of(watch: Watch, name: str) -> ComponentView:
    """Return a component by its name."""
    for part in watch.topology().components:
        if part.id == name:
            return part
    raise NotThereError(f"There is no component {name!r}.")
