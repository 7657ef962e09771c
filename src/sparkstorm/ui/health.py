"""Health: whether the page lives, whether topologies move, and their metrics for Prometheus."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.responses import PlainTextResponse

from sparkstorm.control.health import why_not_ready
from sparkstorm.control.prometheus import CONTENT_TYPE
from sparkstorm.errors import WorldError
from sparkstorm.ui.answers import Answer, NotThereError
from sparkstorm.ui.parameters import FAULTS, Listed
from sparkstorm.ui.watch import Watch

__all__ = ["ROUTER"]

ROUTER = APIRouter(tags=["health"])

_LONGEST_SECS = 60.0


class Life(BaseModel):
    """The page's process answers."""

    status: Literal["alive"] = "alive"


class Readiness(BaseModel):
    """Whether all topologies move, or why one does not, by its id."""

    status: Literal["ready", "not ready"]
    topologies: dict[str, str]


@ROUTER.get("/livez", response_model=Life)
def livez() -> Answer:
    """Return that the page's process answers; topologies play no part. Needs no token."""
    return Answer({"status": "alive"})


@ROUTER.get(
    "/readyz",
    response_model=Readiness,
    responses=FAULTS | {503: {"model": Readiness, "description": "A topology does not move."}},
)
def readyz(
    fleet: Listed,
    topology: Annotated[str | None, Query(description="Only this one.")] = None,
    most_secs: Annotated[
        float, Query(gt=0, le=86_400, description="Older polls and commits are too old.")
    ] = _LONGEST_SECS,
) -> Answer:
    """Return whether polls and commits move, of one topology or of all that have not ended."""
    watches = fleet.watches()
    if topology is not None and topology not in watches:
        raise NotThereError(f"There is no topology {topology!r}.")
    found = {
        name: _state(watch, most_secs)
        for name, watch in watches.items()
        if (watch.listed if topology is None else topology == name)
    }
    ready = all(state == "ready" for state in found.values())
    answer = {"status": "ready" if ready else "not ready", "topologies": found}
    return Answer(answer, 200 if ready else 503)


@ROUTER.get("/metrics", response_class=PlainTextResponse, responses={401: FAULTS[401]})
def metrics(fleet: Listed) -> PlainTextResponse:
    """Return the metrics of all topologies in Prometheus' text format."""
    return PlainTextResponse(fleet.exposition(), media_type=CONTENT_TYPE)


def _state(watch: Watch, most_secs: float) -> str:
    try:
        situation = watch.situation()
    except WorldError:
        return "the driver does not answer"
    return "the driver is gone" if watch.gone else why_not_ready(situation, most_secs) or "ready"
