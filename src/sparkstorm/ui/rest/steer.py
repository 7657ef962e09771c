"""The paths that take orders; their bodies are JSON."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from sparkstorm.errors import ConfigError
from sparkstorm.ui.answers import Answer
from sparkstorm.ui.parameters import ORDER_FAULTS, Found

__all__ = ["ROUTER"]

ROUTER = APIRouter(prefix="/api/v1/topology/{topology}", tags=["orders"], responses=ORDER_FAULTS)

_MOST = 10_000


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Messages(_Body):
    """Messages by their ids."""

    messages: list[str] = Field(min_length=1, max_length=_MOST)


class Partitions(_Body):
    """A spout, or some partitions of it."""

    spout: str
    partitions: list[str] = Field(default=[], max_length=_MOST)


class Follow(_Body):
    """A text in the names or payloads of messages."""

    name: str = Field(min_length=1, max_length=1000)
    spout: str | None = None


class Unfollow(_Body):
    """A text that is followed."""

    name: str


class Level(_Body):
    """A component, and the level from which on it logs."""

    component: str
    level: str


class Letters(_Body):
    """Letters by their ids, or all of a group."""

    letters: list[str] = Field(default=[], max_length=_MOST)
    group: str | None = None

    def check(self) -> None:
        """Refuse a body that names no letters, or names them twice."""
        if bool(self.letters) == (self.group is not None):
            raise ConfigError("Give either letters or a group.")


class Replay(Letters):
    """Letters, and new values of fields for a single one."""

    values: dict[str, Any] | None = None


class Count(BaseModel):
    """How many it were."""

    count: int


class Name(BaseModel):
    """The name of a request."""

    name: str


class Done(BaseModel):
    """The order was given."""

    status: str = "success"


@ROUTER.post("/messages/retry", response_model=Count)
def retry(watch: Found, body: Messages) -> Answer:
    """Let waiting messages be tried in the next batch; return how many will be."""
    return Answer({"count": watch.order(lambda control: control.retry(body.messages))})


@ROUTER.post("/partitions/pause", response_model=Done)
def pause(watch: Found, body: Partitions) -> Answer:
    """Read no new messages of partitions, or of the whole spout."""
    watch.order(lambda control: control.pause(body.spout, body.partitions))
    return Answer({"status": "success"})


@ROUTER.post("/partitions/resume", response_model=Done)
def resume(watch: Found, body: Partitions) -> Answer:
    """Read partitions again."""
    watch.order(lambda control: control.resume(body.spout, body.partitions))
    return Answer({"status": "success"})


@ROUTER.post("/follow", response_model=Done)
def follow(watch: Found, body: Follow) -> Answer:
    """Keep the trees of messages whose name or payload contains a text, from now on."""
    watch.order(lambda control: control.follow(body.name, spout=body.spout))
    return Answer({"status": "success"})


@ROUTER.post("/unfollow", response_model=Done)
def unfollow(watch: Found, body: Unfollow) -> Answer:
    """Follow such messages no longer."""
    watch.order(lambda control: control.unfollow(body.name))
    return Answer({"status": "success"})


@ROUTER.post("/level", response_model=Done)
def level(watch: Found, body: Level) -> Answer:
    """Let a component log from a level on."""
    watch.order(lambda control: control.set_level(body.component, body.level))
    return Answer({"status": "success"})


@ROUTER.post("/letters/replay", response_model=Name)
def replay(watch: Found, body: Replay) -> Answer:
    """Emit dead letters again; the answer names the request, whose progress is in ``replays``."""
    body.check()
    name = watch.order(
        lambda control: control.replay(letters=body.letters, group=body.group, values=body.values)
    )
    return Answer({"name": name})


@ROUTER.post("/letters/discard", response_model=Count)
def discard(watch: Found, body: Letters) -> Answer:
    """Remove dead letters for good; return how many."""
    body.check()
    count = watch.order(
        lambda control: control.discard(letters=body.letters, group=body.group)
    )  # fmt: skip
    return Answer({"count": count})
