"""The views of one topology: which facts each page shows."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from sparkstorm.control.views import ComponentView, SituationView, WindowName
from sparkstorm.errors import SparkstormError
from sparkstorm.ui.answers import NotThereError
from sparkstorm.ui.fleet import Fleet
from sparkstorm.ui.pages.picture import picture_of, rates_of
from sparkstorm.ui.pages.rendering import Page
from sparkstorm.ui.pages.stuck import verdict_of
from sparkstorm.ui.watch import Watch

__all__ = ["STATES", "VIEWS", "WINDOWS", "Query", "topologies", "window_of"]

Query = Mapping[str, str]
"""The parameters of an address."""

View = Callable[[Watch, Query], Page]

WINDOWS: dict[WindowName, str] = {
    "600": "10 minutes",
    "10800": "3 hours",
    "86400": "1 day",
    ":all-time": "all time",
}
STATES = ("waiting", "running", "open", "retry")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

_MOST_SHOWN = 100
_MOST_HELD = 500
_PAGE_OF_LETTERS = 50


def topologies(fleet: Fleet) -> Page:
    """Show all topologies, those that have ended last."""
    rows = []
    for name, watch in fleet.watches().items():
        try:
            rows.append({"watch": watch, "topology": watch.topology(), "now": watch.situation()})
        except SparkstormError:
            rows.append({"watch": watch, "topology": None, "now": None, "id": name})
    rows.sort(key=lambda row: row["watch"].gone)  # type: ignore[attr-defined]
    return Page(title="Topologies", part="topologies.html", facts={"rows": rows})


def window_of(query: Query) -> WindowName:
    """Return the window that an address names; ten minutes without one."""
    return next((window for window in WINDOWS if window == query.get("window")), "600")


def _page(watch: Watch, name: str, title: str, facts: dict[str, Any], **more: Any) -> Page:
    topology = watch.topology()
    return Page(
        title=f"{title} · {topology.name}",
        part=f"{name}.html",
        facts={"watch": watch, "topology": topology, "now_": watch.situation(), **facts},
        topology=topology.id,
        **{"tab": name, **more},
    )


def overview(watch: Watch, query: Query) -> Page:
    """Show the graph, the figures that matter, and all components."""
    window = window_of(query)
    total = watch.window(":all-time")
    chosen = watch.window(window)
    messages = watch.messages(limit=_MOST_HELD)
    facts = {
        "window": window,
        "windows": WINDOWS,
        "metrics": {one.component: one for one in chosen.components},
        "messages": messages,
        "groups": watch.letter_groups(),
        "picture": picture_of(
            watch.topology(), watch.window("600"), total, watch.before(), messages.messages
        ),
        "rates": rates_of(total, watch.before()),
        "charts": _charts(watch.samples()),
    }
    return _page(watch, "overview", "Overview", facts)


def _charts(samples: list[SituationView]) -> dict[str, list[list[float]]]:
    """Return the lines of the charts: times first, then rates by the difference of two samples."""
    pairs = [(a, b) for a, b in pairwise(samples) if b.at > a.at]
    return {
        "rates": [
            [b.at for _, b in pairs],
            *(
                [(getattr(b, name) - getattr(a, name)) / (b.at - a.at) for a, b in pairs]
                for name in ("acked", "failed")
            ),
        ],
        "pending": [
            [one.at for one in samples],
            [one.pending for one in samples],
            [one.waiting for one in samples],
        ],
    }


def messages(watch: Watch, query: Query) -> Page:
    """List unfinished messages, the oldest first."""
    chosen = {name: query.get(name) or None for name in ("state", "spout", "component", "name")}
    if chosen["state"] not in STATES:
        chosen["state"] = None
    parts = watch.topology().components
    facts = {
        "chosen": chosen,
        "found": watch.messages(**chosen, limit=_MOST_SHOWN),
        "followed": watch.followed(),
        "states": STATES,
        "spouts": [part.id for part in parts if part.kind == "spout"],
        "bolts": [part.id for part in parts if part.kind == "bolt"],
    }
    return _page(watch, "messages", "Messages", facts, tools="messages_tools.html")


def message(watch: Watch, query: Query) -> Page:
    """Show one message: its attempts side by side, each with tree, times, exception and lines."""
    found = watch.message(query.get("id", ""))
    if found is None:
        raise NotThereError(
            "Nothing is known of this message. It may be acked long ago: follow its name to keep "
            "the trees of the next one."
        )
    return _page(watch, "message", f"Message {found.name[:80]}", {"found": found}, tab="messages")


def letters(watch: Watch, query: Query) -> Page:
    """Show dead letters: their groups, or the letters of one group."""
    group = query.get("group") or None
    offset = _whole(query.get("offset", ""))
    groups = watch.letter_groups()
    facts = {
        "group": next((one for one in groups if one.group == group), None),
        "groups": groups,
        "found": watch.letters(group=group, limit=_PAGE_OF_LETTERS, offset=offset),
        "offset": offset,
        "size": _PAGE_OF_LETTERS,
        "asked": group,
        "replays": watch.replays(),
    }
    return _page(watch, "letters", "Dead letters", facts)


def letter(watch: Watch, query: Query) -> Page:
    """Show one dead letter, to be edited and replayed."""
    found = watch.letter(query.get("id", ""))
    if found is None:
        raise NotThereError("This letter is no longer there: it was replayed or discarded.")
    facts = {"found": found}
    return _page(watch, "letter", f"Letter {found.id[:80]}", facts, tab="letters", live=False)


def _whole(text: str) -> int:
    return min(int(text), 10**9) if text.isascii() and text.isdigit() and len(text) < 12 else 0


def partitions(watch: Watch, query: Query) -> Page:
    """Say of each partition why its offset stands where it stands; stuck ones come first."""
    situation = watch.situation()
    resting = situation.status == "INACTIVE"
    said = [(one, verdict_of(one, resting=resting)) for one in situation.partitions]
    said.sort(key=lambda pair: (pair[1].tone != "bad", -pair[0].lag))
    facts = {"said": said[:_MOST_SHOWN], "left_out": max(0, len(said) - _MOST_SHOWN)}
    return _page(watch, "partitions", "Partitions", facts)


def batches(watch: Watch, query: Query) -> Page:
    """Show where the time of the last batches went."""
    shown = watch.situation().batch_times[-_MOST_SHOWN:]
    longest = max((one.start_secs + one.job_secs + one.commit_secs for one in shown), default=0.0)
    names = sorted({name for one in shown for name in one.busiest})
    facts = {"shown": shown[::-1], "longest": longest or 1.0, "names": names}
    return _page(watch, "batches", "Batches", facts)


def ackers(watch: Watch, query: Query) -> Page:
    """Show the ackers, and how long messages take to complete."""
    window = window_of(query)
    found = {one.component: one for one in watch.window(window).components}
    spouts = [part.id for part in watch.topology().components if part.kind == "spout"]
    facts = {
        "window": window,
        "windows": WINDOWS,
        "acker": found.get("__acker"),
        "spouts": [found[name] for name in spouts if name in found],
    }
    return _page(watch, "ackers", "Ackers", facts)


def component(watch: Watch, query: Query) -> Page:
    """Show one component: its streams, tasks, failures and last lines."""
    part = _component(watch, query.get("id", ""))
    window = window_of(query)
    found = [one for one in watch.window(window).components if one.component == part.id]
    facts = {
        "part": part,
        "window": window,
        "windows": WINDOWS,
        "metrics": found[0] if found else None,
        "lines": watch.lines(component=part.id, limit=50)[::-1],
        "held": watch.messages(component=part.id, limit=20),
        "levels": LEVELS,
    }
    return _page(
        watch, "component", part.id, facts, tab="overview", tools="component_tools.html"
    )  # fmt: skip


def _component(watch: Watch, name: str) -> ComponentView:
    for part in watch.topology().components:
        if part.id == name:
            return part
    raise NotThereError(f"There is no component {name!r}.")


def configuration(watch: Watch, query: Query) -> Page:
    """Show all settings, secrets masked."""
    facts = {"facts": asdict(watch.topology())}
    return _page(watch, "configuration", "Configuration", facts, live=False)


def logs(watch: Watch, query: Query) -> Page:
    """Show the last lines of components, the newest first."""
    level = query.get("level")
    chosen = {
        "component": query.get("component") or None,
        "message": query.get("message") or None,
        "level": level if level in LEVELS else None,
    }
    facts = {
        "chosen": chosen,
        "lines": watch.lines(**chosen, limit=200)[::-1],
        "names": [part.id for part in watch.topology().components],
        "levels": LEVELS,
    }
    return _page(watch, "logs", "Logs", facts, tools="logs_tools.html")


VIEWS: dict[str, View] = {
    "": overview,
    "messages": messages,
    "message": message,
    "letters": letters,
    "letter": letter,
    "partitions": partitions,
    "batches": batches,
    "ackers": ackers,
    "component": component,
    "configuration": configuration,
    "logs": logs,
}
"""The views by the last part of their address."""
