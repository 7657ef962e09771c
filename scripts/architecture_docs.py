"""Draw the pictures and tables of docs/architecture.md: ``python scripts/architecture_docs.py``.

They are drawn from the code: the rooms from its imports, the table from the batch's phases. A test
fails when the page is not up to date.
"""

import ast
import re
import runpy
from collections.abc import Callable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from sparkstorm.batches import batch
from sparkstorm.batches.batch import NEXT, Event, Phase

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"

ROOMS = [
    "batches",
    "sources",
    "tasks",
    "state",
    "packets",
    "processes",
    "acking",
    "checkpoint",
    "dead_letters",
    "planning",
    "topology",
    "components",
    "spark",
    "local",
    "kafka",
    "multilang",
    "spouts",
    "bolts",
    "testing",
    "cli",
]
"""The packages of the picture; the modules at the root are below all of them."""


def page() -> str:
    """Return the page with all drawings up to date."""
    text = PAGE.read_text(encoding="utf-8")
    for name, draw in DRAWINGS.items():
        start, end = f"<!-- drawn: {name} -->\n", f"<!-- end: {name} -->"
        head, rest = text.split(start)
        text = head + start + draw() + end + rest.split(end, 1)[1]
    return text


def rooms() -> str:
    """Return who imports whom, without arrows that follow from others, as a Mermaid graph."""
    graph = _reduced(_imports_of_rooms())
    arrows = (f"    {room} --> {target}\n" for room in ROOMS for target in sorted(graph[room]))
    return "```mermaid\ngraph TD\n" + "".join(arrows) + "```\n"


def phases() -> str:
    """Return a table: what each phase means, and where each event leads from there."""
    meanings = _member_docstrings(Path(batch.__file__), "Phase")
    rows = [
        f"| {phase.name} | {meanings[phase.name]} | {', '.join(_steps(phase)) or '–'} |\n"
        for phase in Phase
    ]
    return "| phase | what it means | event → next phase |\n|---|---|---|\n" + "".join(rows)


DRAWINGS: dict[str, Callable[[], str]] = {"rooms": rooms, "phases": phases}


def _steps(phase: Phase) -> Iterator[str]:
    for event in Event:
        if (phase, event) in NEXT:
            yield f"{event} → {NEXT[phase, event].name}"


def _imports_of_rooms() -> dict[str, set[str]]:
    imports_of = runpy.run_path(str(ROOT / "tests/test_layers.py"))["imports_of"]
    graph: dict[str, set[str]] = {room: set() for room in ROOMS}
    for use in imports_of(ROOT / "src"):
        room, target = use.source.split(".")[0], use.target.split(".")[0]
        if use.ours and room in graph and target in graph and room != target:
            graph[room].add(target)
    return graph


def _reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return a graph without the arrows between rooms that a longer way connects, too."""
    reached: dict[str, set[str]] = {}
    for room in TopologicalSorter(graph).static_order():
        reached[room] = graph[room].union(*(reached[target] for target in graph[room]))
    return {
        room: {t for t in targets if not any(t in reached[o] for o in targets - {t})}
        for room, targets in graph.items()
    }


def _member_docstrings(path: Path, name: str) -> dict[str, str]:
    """Return the text below each member of a class, on one line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    [found] = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name]
    texts = {}
    for member, below in zip(found.body, found.body[1:], strict=False):
        if isinstance(member, ast.Assign) and isinstance(below, ast.Expr):
            text = ast.literal_eval(below.value)
            texts[ast.unparse(member.targets[0])] = re.sub(r"\s+", " ", text).strip()
    return texts


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
