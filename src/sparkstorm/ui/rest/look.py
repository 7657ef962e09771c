"""The paths that answer questions; their answers are the views of ``sparkstorm.control``."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from sparkstorm.control.views import (
    GroupView,
    LettersView,
    LetterView,
    LineView,
    MessageDetailView,
    MessagesView,
    PartitionView,
    ReplayView,
    SituationView,
    WindowView,
)
from sparkstorm.ui.answers import Answer, NotThereError, masked_settings
from sparkstorm.ui.parameters import FAULTS, Found, Window

__all__ = ["ROUTER"]

ROUTER = APIRouter(
    prefix="/api/v1/topology/{topology}", tags=["messages and letters"], responses=FAULTS
)

Limit = Annotated[int, Query(ge=1, le=1000, description="How many at most.")]
Offset = Annotated[int, Query(ge=0, le=10**9, description="How many to pass over.")]
State = Annotated[
    str | None,
    Query(pattern="^(waiting|running|open|retry)$", description="waiting, running, open or retry."),
]
Level = Annotated[
    str | None,
    Query(pattern="^(DEBUG|INFO|WARNING|ERROR|CRITICAL)$", description="This level or above."),
]
Id = Annotated[str, Query(description="Its id; any text.")]


@ROUTER.get("/situation", response_model=SituationView)
def situation(watch: Found) -> Answer:
    """Return how the topology stands, with partitions and the last batches."""
    return Answer(watch.situation())


@ROUTER.get("/window", response_model=WindowView)
def window(watch: Found, window: Window = "600") -> Answer:
    """Return all figures of a window, with quantiles, by component, stream and task."""
    return Answer(watch.window(window))


@ROUTER.get("/messages", response_model=MessagesView)
def messages(
    watch: Found,
    state: State = None,
    spout: str | None = None,
    component: Annotated[str | None, Query(description="Held by it, or failed there last.")] = None,
    name: Annotated[str | None, Query(description="A part of the name.")] = None,
    older_than_secs: Annotated[float | None, Query(ge=0, description="Only older ones.")] = None,
    limit: Limit = 100,
) -> Answer:
    """Return unfinished messages, the oldest first."""
    found = watch.messages(state=state, spout=spout, component=component, name=name, limit=limit)
    if older_than_secs is None:
        return Answer(found)
    # The oldest come first, so all older ones are among those found, up to the limit.
    older = [one for one in found.messages if one.age_secs > older_than_secs]
    whole = len(older) < len(found.messages) or found.total <= len(found.messages)
    return Answer(MessagesView(total=len(older) if whole else found.total, messages=older))


@ROUTER.get("/message", response_model=MessageDetailView)
def message(watch: Found, id: Id) -> Answer:
    """Return one message with its attempts and their trees."""
    found = watch.message(id)
    if found is None:
        raise NotThereError(f"Nothing is known of a message {id!r}.")
    return Answer(found)


@ROUTER.get("/partitions", response_model=list[PartitionView])
def partitions(watch: Found, spout: str | None = None) -> Answer:
    """Return the partitions of all spouts: committed, beyond, in flight, and who holds them up."""
    found = watch.situation().partitions
    return Answer([one for one in found if spout in (None, one.spout)])


@ROUTER.get("/letters", response_model=LettersView)
def letters(
    watch: Found, group: str | None = None, limit: Limit = 100, offset: Offset = 0
) -> Answer:
    """Return dead letters, the newest first."""
    return Answer(watch.letters(group=group, limit=limit, offset=offset))


@ROUTER.get("/letters/groups", response_model=list[GroupView])
def letter_groups(watch: Found) -> Answer:
    """Return dead letters by kind, the largest group first."""
    return Answer(watch.letter_groups())


@ROUTER.get("/letter", response_model=LetterView)
def letter(watch: Found, id: Id) -> Answer:
    """Return one dead letter."""
    found = watch.letter(id)
    if found is None:
        raise NotThereError(f"There is no letter {id!r}: it was replayed, discarded or never was.")
    return Answer(found)


@ROUTER.get("/replays", response_model=list[ReplayView])
def replays(watch: Found) -> Answer:
    """Return the requests to replay letters, with their progress, the newest first."""
    return Answer(watch.replays())


@ROUTER.get("/followed", response_model=list[str])
def followed(watch: Found) -> Answer:
    """Return the texts that are followed."""
    return Answer(watch.followed())


@ROUTER.get("/lines", response_model=list[LineView])
def lines(
    watch: Found,
    component: str | None = None,
    message: str | None = None,
    level: Level = None,
    limit: Limit = 200,
) -> Answer:
    """Return the last lines of components, the oldest first."""
    return Answer(watch.lines(component=component, message=message, level=level, limit=limit))


@ROUTER.get("/configuration", response_model=dict[str, Any])
def configuration(watch: Found) -> Answer:
    """Return the topology as it was submitted, secrets masked."""
    return Answer(masked_settings(asdict(watch.topology())))
