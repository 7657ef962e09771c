"""Rendering: templates, and the texts that pass through them."""

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, final
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from sparkstorm._version import __version__
from sparkstorm.clock import Clock
from sparkstorm.texts.showing import as_json, visible_lines
from sparkstorm.texts.wording import counted
from sparkstorm.ui.answers import masked_settings, plain
from sparkstorm.ui.pages import wording
from sparkstorm.ui.pages.stuck import strip_of
from sparkstorm.ui.pages.tree import rows_of

__all__ = ["TEMPLATES", "Page", "Renderer"]

TEMPLATES = Path(__file__).parents[1] / "templates"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page to be drawn.

    Attributes:
        title: the page's title.
        part: the template of the part that is kept fresh.
        facts: what that template is told.
        tools: the template of the part above, which stays as it is, such as a form.
        tab: the tab that the page belongs to.
        topology: the topology's id; empty for pages about all.
        live: whether the part is kept fresh.
        status: the HTTP status.
    """

    title: str
    part: str
    facts: dict[str, Any] = field(default_factory=dict)
    tools: str = ""
    tab: str = ""
    topology: str = ""
    live: bool = True
    status: int = 200


@final
class Renderer:
    """Draws pages; may be used by many threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._environment = _environment()

    def part(self, page: Page) -> str:
        """Draw the part that is kept fresh."""
        facts = {**page.facts, "page": page, "now": self._clock.wall()}
        return self._environment.get_template(page.part).render(facts)

    def whole(self, page: Page, part: str) -> str:
        """Draw the whole page around its part."""
        drawn = Markup(part)  # noqa: S704 - a template has just escaped it
        facts = {**page.facts, "page": page, "drawn": drawn, "now": self._clock.wall()}
        return self._environment.get_template("page.html").render(facts)


@cache
def _environment() -> Environment:
    """Return the templates, all of them compiled: no reader waits for that."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_shown,
    )
    environment.filters |= {
        "at_clock": wording.at_clock,
        "count": wording.count,
        "counted": counted,
        "editable": _editable,
        "for_machines": wording.for_machines,
        "json": _data,
        "percent": wording.percent,
        "rate": wording.rate,
        "rows": rows_of,
        "secs": wording.secs,
        "settings": masked_settings,
        "strip": strip_of,
        "whole": _whole,
        "compact": as_json,
    }
    environment.globals |= {"to": address, "version": __version__}
    for name in environment.list_templates():
        environment.get_template(name)
    return environment


def address(topology: str = "", *path: str, **query: object) -> str:
    """Return the address of a page; every part may be any text.

    >>> address("shop", "message", id="a/b?c")
    '/topologies/shop/message?id=a%2Fb%3Fc'
    >>> address()
    '/'
    """
    parts = ["topologies", topology, *path] if topology else [*path]
    way = "/".join(quote(one, safe="", errors="replace") for one in parts)
    asked = [(name, one) for name, one in query.items() if one not in ("", None)]
    return f"/{way}" + (f"?{urlencode(asked, errors='replace')}" if asked else "")


def _shown(value: object) -> object:
    """Make every text visible that a template writes, before it is escaped."""
    if value is None:
        return "–"
    return (
        visible_lines(value) if isinstance(value, str) and not isinstance(value, Markup) else value
    )


def _editable(value: object) -> Markup:
    """Return a value as JSON to be edited: all of it, and nothing masked or cut."""
    return escape(as_json(value))


def _whole(text: str) -> Markup:
    """Return a text that a form sends back: all of it, and nothing masked or cut."""
    return escape(text.encode(errors="replace").decode())


def _data(value: object) -> Markup:
    """Return a value as JSON for a script, whole."""
    return escape(json.dumps(plain(value)))
