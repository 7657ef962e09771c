"""The view of running topologies: tables of topologies, components and messages, and trees."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from sparkstorm.cli.letters.view import age_text
from sparkstorm.cli.running.commands import Standing, deaf
from sparkstorm.control.views import (
    AttemptView,
    MessageDetailView,
    MessagesView,
    NodeView,
)
from sparkstorm.texts.showing import indented, visible
from sparkstorm.texts.wording import counted

__all__ = ["message_page", "messages_table", "status_page", "topologies_table"]

_COLOURS = {"ACTIVE": "green", "INACTIVE": "yellow", "KILLED": "red", "DEAD": "bold red"}
_STATES = {"acked": "green", "failed": "bold red", "open": "yellow", "emitted": "dim"}
_LONGEST = 60


def topologies_table(standings: Sequence[Standing]) -> Table:
    """Return a table with a line for each topology."""
    table = Table(title=counted(len(standings), "topology", "topologies"), title_justify="left")
    for column in ("name", "status", "id"):
        table.add_column(column, no_wrap=True)
    for column in ("pid", "up", "acked", "pending", "failed", "dead letters"):
        table.add_column(column, justify="right")
    table.add_column("checkpoint")
    has_pages = any(entry.page and not entry.is_dead for entry, _ in standings)
    if has_pages:
        table.add_column("page", no_wrap=True)
    for entry, stand in standings:
        status = deaf(entry) if stand is None else stand.status
        up = "" if stand is None else age_text(time.time() - entry.holder.since)
        figures = ["", "", "", ""]
        if stand is not None:
            counts = (stand.acked, stand.pending, stand.failed, stand.dead_letters)
            figures = [f"{count:,}" for count in counts]
        table.add_row(
            _text(entry.name),
            Text(status, style=_COLOURS.get(status, "red")),
            _text(entry.id),
            str(entry.holder.pid),
            up,
            *figures,
            _text(entry.checkpoint or "temporary"),
            *([_text("" if entry.is_dead else entry.page)] if has_pages else []),
        )
    return table


def status_page(found: Mapping[str, Any]) -> RenderableType:
    """Return how one topology stands: its counts, its components, its oldest troubles."""
    topology, stand, window = found["topology"], found["situation"], found["window"]
    head = Text.assemble(
        (visible(topology["name"]), "bold"),
        "  ",
        (stand["status"], _COLOURS.get(stand["status"], "")),
        f"  up {age_text(stand['at'] - topology['started'])}, on {visible(topology['master'])}, "
        f"{topology['guarantee']}",
    )
    counts = (
        f"{stand['acked']:,} acked, {stand['pending']:,} pending, "
        f"{stand['waiting']:,} wait for a retry, "
        f"{stand['failed']:,} failed attempts, {counted(stand['dead_letters'], 'dead letter')}, "
        f"{counted(stand['batches'], 'batch', 'batches')}"
    )
    return Group(head, Text(counts), _components(window["components"]))


def messages_table(found: MessagesView) -> Table:
    """Return a table with a line for each message, the oldest first."""
    title = counted(found.total, "unfinished message")
    if found.total > len(found.messages):
        title += f", of which the {len(found.messages)} oldest"
    table = Table(title=title, title_justify="left")
    table.add_column("id", no_wrap=True)
    for column in ("message", "spout", "state"):
        table.add_column(column)
    for column in ("attempt", "age", "due in"):
        table.add_column(column, justify="right")
    table.add_column("held by")
    table.add_column("why", min_width=20)  # the reader looks for it; other columns give way
    for one in found.messages:
        table.add_row(
            one.id,
            _text(one.name),
            _text(one.spout),
            one.state,
            f"{one.attempt:,}",
            age_text(one.age_secs),
            "" if one.due_secs is None else age_text(one.due_secs),
            _text(", ".join(one.held_by)),
            _text(one.why),
        )
    return table


def message_page(message: MessageDetailView) -> RenderableType:
    """Return a message with its attempts, each with its tree if it was traced."""
    head = Text.assemble(
        (visible(message.name), "bold"), f"  of {visible(message.spout)}: {message.state}"
    )
    if not message.attempts:
        return Group(head, Text("Nothing is kept of its attempts: none has failed so far."))
    return Group(head, *(part for one in message.attempts for part in _attempt(one)))


def _attempt(one: AttemptView) -> list[RenderableType]:
    secs = "" if one.ended is None else f" after {one.ended - one.began:.1f} s"
    outcome = visible(f"{one.outcome}{secs}{one.component and f' in {one.component}'}")
    style = "green" if one.outcome == "acked" else "red"
    parts: list[RenderableType] = [
        Text.assemble((f"\nattempt {one.number}", "bold"), ": ", (outcome, style))
    ]
    if one.why:
        parts.append(Text(indented(one.why)))
    if one.frame:
        parts.append(Text(indented(one.frame), style="cyan"))
    parts += [
        Text(indented(f"{line.component} │ {line.text}"), style="dim") for line in one.lines[:20]
    ]
    if one.tree is not None:
        parts.append(_tree(one.tree.nodes))
    return parts


def _tree(nodes: Sequence[NodeView]) -> Tree:
    root = Tree("")
    branches: dict[str, Tree] = {}
    for node in nodes:  # parents come first
        above = next((branches[one] for one in node.parents if one in branches), root)
        branches[node.id] = above.add(_node(node))
    root.hide_root = True
    return root


def _node(node: NodeView) -> Text:
    values = ", ".join(f"{name}={value}" for name, value in node.values.items())
    text = Text.assemble(
        f"{visible(node.component)} (task {node.task}) ",
        (node.state, _STATES.get(node.state, "")),
        f"  {visible(values, 2 * _LONGEST)}",
    )
    if node.why:
        text.append(f"  {visible(node.why, 2 * _LONGEST)}", style="red")
    return text


def _components(components: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title="all time", title_justify="left")
    table.add_column("component")
    for column in ("executed", "emitted", "acked", "failed", "capacity", "execute", "complete"):
        table.add_column(column, justify="right")
    for one in components:
        capacity = "" if one["capacity"] is None else f"{one['capacity']:.2f}"
        table.add_row(
            _text(one["component"]),
            *(f"{one[name]:,}" for name in ("executed", "emitted", "acked", "failed")),
            capacity,
            _millis(one["execute"]["p50"]),
            _millis(one["complete"]["p50"]),
        )
    return table


def _millis(secs: float | None) -> str:
    return "" if secs is None else f"{secs * 1000:,.3g} ms"


def _text(text: str) -> Text:
    return Text(visible(text, _LONGEST))
