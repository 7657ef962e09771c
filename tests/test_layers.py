"""The layers: imports only go down, and only ``sparkstorm.spark`` knows Spark.

Imports for types and inside of functions obey the table like all others: a type that is needed
further up is a type in the wrong file.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"

# --- the table: each layer, from the bottom up, with what it may import beside itself -----------

VALUES = {"texts", "_version", "clock", "config", "errors", "garbage", "java", "metrics"}
VALUES |= {"streams", "tuples", "verdicts", "control.views"}
CORE = VALUES | {"acking", "components", "topology", "planning"}
FILES = {"checkpoint.files", "checkpoint.seal"}
EDGE = VALUES | {"components", "topology", "sources.retry", "dead_letters"}
ENGINE = CORE | {"packets", "processes", "state", "tasks", "dead_letters", "checkpoint", "sources"}
ENGINE |= {"batches"}

MAY_IMPORT: dict[str, set[str]] = {
    "texts.credentials": set(),
    "texts.showing": {"texts.credentials"},
    "errors": {"texts.showing"},
    "texts": {"texts.credentials", "texts.showing", "errors"},
    **{value: {"texts", "errors"} for value in VALUES - {"errors", "texts"}},
    "acking": {"errors", "verdicts"},
    "components": VALUES,
    "topology": VALUES | {"components"},
    "planning": VALUES | {"components", "topology"},
    "packets": CORE,
    "state": CORE | {"packets"},
    "processes": VALUES | {"components"},
    "tasks": CORE | {"packets", "processes", "state"},
    "checkpoint.files": {"errors"},
    "checkpoint.seal": {"errors", "checkpoint.files"},
    "checkpoint": CORE | FILES,
    "dead_letters": VALUES | FILES,
    "sources": CORE | {"packets", "processes", "state", "tasks", "checkpoint", "dead_letters"},
    "batches": CORE | {"packets", "state", "tasks", "checkpoint", "dead_letters", "sources"},
    "spouts": EDGE,
    "bolts": VALUES | {"components"},
    "formats": VALUES | {"components"},
    "kafka": EDGE | {"formats"},
    "queues": EDGE | {"spouts", "formats"},
    "multilang": VALUES | {"components", "topology"},
    "postgres": EDGE | {"spouts", "queues"},
    "flux": VALUES | {"components", "topology", "multilang"},
    "control": ENGINE,
    "ui": VALUES | {"control"},
    "telemetry": ENGINE,
    "local": ENGINE,
    "spark": ENGINE | {"control", "telemetry"},
    "testing.shells.conversation": VALUES | {"multilang"},
    "testing.shells.children": VALUES | {"multilang", "testing.shells.conversation"},
    "testing": ENGINE | {"control", "local", "queues", "spouts", "testing.shells.children"},
    "testing.plugin": ENGINE | {"local", "spark"},
    "cli": ENGINE
    | EDGE
    | {
        "spouts",
        "bolts",
        "kafka",
        "postgres",
        "queues",
        "multilang",
        "flux",
        "local",
        "spark",
        "testing",
        "control",
        "ui",
    },
    "__main__": {"cli"},
}
"""A dotted name is one module, and stands before its package."""

AT_IMPORT = VALUES | {"acking", "components", "topology"}
"""What ``import sparkstorm`` may load; ``__getattr__`` loads the rest when it is asked for."""

APART = {"spark.driver", "spark.worker"}
"""Code of two kinds of process: neither imports the other."""

ONLY_IN: dict[str, set[str]] = {
    "pyspark": {"spark", "testing.plugin"},
    "py4j": {"spark"},
    "confluent_kafka": {"kafka.client"},
    "kazoo": {"kafka.offsets.zookeeper"},
    "msgpack": {"multilang.msgpack"},
    "psycopg": {"postgres.address"},
    "opentelemetry": {"telemetry.otel"},
    "pika": {"queues.rabbitmq"},
    "redis": {"queues.redis"},
    "boto3": {"queues.sqs"},
    "botocore": {"queues.sqs"},
    "yaml": {"flux.document"},
    **{library: {"ui"} for library in ("fastapi", "jinja2", "starlette", "uvicorn")},
}
"""Libraries that are named in one place only."""

ONLY_USES: dict[str, set[str]] = {"acking": {"numpy"}}
"""Layers that keep to these libraries, beside Python's own."""


MOST_FILES = 15
"""A folder is a room: more files than these, and nobody finds a way."""

MOST_IMPORTS = 15
"""A module that needs more of ours than these is several nouns."""

ROOTS = {"spark.runner", "local.runner", "batches.assembly", "cli.run", ""}
"""These put others together, and import what they put together."""

OVER = {
    "kafka.spout": 18,
    "sources.partitioned.task": 21,
    "sources.replayed.replays": 18,
    "batches.transactions": 16,
    "tasks.instance": 16,
    "testing.simulation": 16,
}
"""These are over the limit, and must not grow: to be cut along their nouns."""


# --- the checker -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Import:
    """One import: both ends are dotted names, ours without ``sparkstorm.``, the root is ''."""

    source: str
    target: str
    ours: bool
    lazy: bool


def modules_of(src: Path) -> dict[str, Path]:
    """Return every module of the package by its dotted name."""
    root = src / "sparkstorm"
    names = {path: path.relative_to(root).with_suffix("").parts for path in root.rglob("*.py")}
    return {".".join(p for p in parts if p != "__init__"): path for path, parts in names.items()}


@cache
def imports_of(src: Path) -> tuple[Import, ...]:
    """Return every import of the package, those for types and inside of functions included."""
    return tuple(_imports_of(src))


def _imports_of(src: Path) -> Iterator[Import]:
    modules = modules_of(src)
    for source, path in modules.items():
        for node, lazy in statements_of(ast.parse(path.read_text())):
            for target in targets_of(node, modules):
                ours = target.split(".")[0] == "sparkstorm"
                name = target.removeprefix("sparkstorm").removeprefix(".") if ours else target
                yield Import(source, name, ours, lazy)


def statements_of(node: ast.AST, *, lazy: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Yield each statement inside a node, with whether importing the module leaves it alone."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):  # no import stands in an expression
            yield child, lazy
            yield from statements_of(child, lazy=lazy or is_lazy(child))


def is_lazy(node: ast.AST) -> bool:
    """Tell whether importing a module leaves the node's body alone."""
    types_only = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    return types_only or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def targets_of(node: ast.AST, modules: dict[str, Path]) -> list[str]:
    """Return the modules that a statement imports; a relative import counts as none of ours."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = "." * node.level + (node.module or "")
        inside = [f"{base}.{alias.name}" for alias in node.names]
        found = [name for name in inside if name.removeprefix("sparkstorm.") in modules]
        return found + [base] * (len(found) < len(inside))
    return []


def within(name: str, places: set[str]) -> bool:
    """Tell whether a module is one of the places, or inside of one."""
    return any(name == place or name.startswith(f"{place}.") for place in places)


def layer_of(name: str) -> str:
    """Return the entry of the table that a module falls under."""
    return name if name in MAY_IMPORT else name.split(".")[0]


def faults_of(src: Path) -> list[str]:
    """Return every breach of the table, as sentences."""
    unknown = {layer_of(name) for name in modules_of(src)} - set(MAY_IMPORT) - {""}
    faults = [f"{name} is not in the table: decide what it may import" for name in sorted(unknown)]
    imports = list(imports_of(src))
    for use in imports:
        if layer_of(use.source) not in unknown:
            reason = fault_of_ours(use) if use.ours else fault_of_library(use)
            line = f"{use.source or '__init__'} imports {use.target or 'the root'}: {reason}"
            faults += [line] if reason else []
    return faults + cycles_of(set(modules_of(src)), imports)


def fault_of_ours(use: Import) -> str | None:
    """Return why the import of one of our modules is a breach, or None."""
    layer = layer_of(use.source)
    if layer == "":
        at_import = use.lazy or within(use.target, AT_IMPORT)
        return None if at_import else "only __getattr__ may load it"
    if use.target == "":
        return "name the module that defines it"
    own = layer_of(use.target) == layer or within(layer, {layer_of(use.target)})
    if not own and not within(use.target, MAY_IMPORT[layer]):
        return f"{layer} may import {', '.join(sorted(MAY_IMPORT[layer])) or 'nothing of ours'}"
    sides = {side for side in APART for end in (use.source, use.target) if within(end, {side})}
    return "they run in different processes" if len(sides) > 1 else None


def fault_of_library(use: Import) -> str | None:
    """Return why the import of a library is a breach, or None."""
    library = use.target.split(".")[0]
    if not library:
        return "write the whole name"
    if library in ONLY_IN and not within(use.source, ONLY_IN[library]):
        return f"{library} belongs to {', '.join(sorted(ONLY_IN[library]))}"
    allowed = ONLY_USES.get(layer_of(use.source))
    if allowed is None or library in allowed or library in sys.stdlib_module_names:
        return None
    return f"{layer_of(use.source)} uses only {', '.join(sorted(allowed))}"


def cycles_of(modules: set[str], imports: list[Import]) -> list[str]:
    """Return a cycle among our modules, if there is one; what the root loads lazily is none."""
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for use in imports:
        if use.ours and not (use.source == "" and use.lazy):
            graph[use.source].add(use.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return ["a cycle: " + " ← ".join(name or "__init__" for name in error.args[1])]
    return []


# --- the tests ---------------------------------------------------------------------------------


def test_imports_only_go_down() -> None:
    """The package keeps to the table."""
    assert faults_of(SRC) == []


def test_the_table_itself_only_goes_down() -> None:
    """No layer may import one that stands further down in the table."""
    below: set[str] = set()
    for layer, allowed in MAY_IMPORT.items():
        assert all(within(name, below) for name in allowed), layer
        below.add(layer)


@pytest.mark.process
def test_no_folder_has_too_many_files() -> None:
    """Subfolders do not count; sources of what is compiled do."""
    crowded = {
        str(folder.relative_to(SRC)): len(files)
        for folder in SRC.rglob("*")
        if folder.is_dir() and folder.name != "__pycache__"
        if len(files := [one for one in folder.iterdir() if one.suffix in (".py", ".pxd")])
        > MOST_FILES
    }
    assert crowded == {}


def test_no_module_imports_too_many_others() -> None:
    """Composition roots aside; modules that were over the limit before may only shrink."""
    counted: dict[str, set[str]] = {}
    for use in imports_of(SRC):
        if use.ours:
            counted.setdefault(use.source, set()).add(use.target)
    over = {
        name: len(targets)
        for name, targets in counted.items()
        if name not in ROOTS and len(targets) > OVER.get(name, MOST_IMPORTS)
    }
    assert over == {}


@pytest.mark.process
def test_importing_the_package_loads_no_spark() -> None:
    """``import sparkstorm`` is quick and works where there is no PySpark."""
    code = (
        f"import sys; sys.path.insert(0, {str(SRC)!r}); import sparkstorm; "
        f"sys.exit(', '.join(sorted({set(ONLY_IN)!r} & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("planted", "fault"),
    [
        ({"acking/a.py": "from sparkstorm.tuples import Tuple"}, "acking may import errors"),
        ({"acking/a.py": "import pandas"}, "acking uses only numpy"),
        ({"planning/a.py": "from sparkstorm.local import x"}, "planning may import"),
        ({"tasks/a.py": "from sparkstorm import batches"}, "tasks may import"),
        ({"spark/a.py": "def f():\n    import sparkstorm.local"}, "spark may import"),
        ({"spark/driver/a.py": "import sparkstorm.spark.worker.b"}, "different processes"),
        ({"local/a.py": "from pyspark.sql import Row"}, "pyspark belongs to spark"),
        ({"spouts/a.py": "from sparkstorm.sources.hosted.task import x"}, "spouts may import"),
        ({"topology/a.py": "from sparkstorm import Bolt"}, "name the module that defines it"),
        ({"topology/a.py": "from .graph import x"}, "write the whole name"),
        ({"__init__.py": "from sparkstorm.spark.runner import x"}, "only __getattr__ may load"),
        ({"newcomer/a.py": ""}, "newcomer is not in the table"),
        (
            {
                "topology/a.py": "from sparkstorm.topology.b import x",
                "topology/b.py": "if TYPE_CHECKING:\n    from sparkstorm.topology.a import x",
            },
            "a cycle: ",
        ),
    ],
)
def test_the_check_catches(tmp_path: Path, planted: dict[str, str], fault: str) -> None:
    """A planted breach is found, and nothing else is."""
    plant(tmp_path, {"batches/__init__.py": "", "local/__init__.py": "", **planted})
    found = faults_of(tmp_path)
    assert found, "nothing was found"
    assert [line for line in found if fault not in line] == []


def test_the_check_lets_pass_what_is_allowed(tmp_path: Path) -> None:
    """Imports that go down, and what the root loads only when asked, are no breach."""
    plant(
        tmp_path,
        {
            "__init__.py": "from sparkstorm.errors import x\ndef f():\n    import sparkstorm.cli",
            "errors.py": "",
            "acking/ids.py": "import math\nimport numpy as np\nfrom sparkstorm.errors import x",
            "cli/main.py": "from sparkstorm.testing.plugin import x",
            "spark/driver/a.py": "import pyspark\nfrom sparkstorm.spark.rows import x",
            "spouts/a.py": "from sparkstorm.sources.retry import x",
            "testing/plugin.py": "def f():\n    import pyspark, sparkstorm.spark.runner",
        },
    )
    assert faults_of(tmp_path) == []


def plant(src: Path, files: dict[str, str]) -> None:
    """Write the files of a package ``sparkstorm``."""
    for name, text in files.items():
        path = src / "sparkstorm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
