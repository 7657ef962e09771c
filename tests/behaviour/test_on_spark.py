"""The list of what runs on Spark is whole: no file is left out, and no name leads nowhere."""

import ast
from pathlib import Path

import pytest

from tests.behaviour.on_spark import ON_SPARK

HERE = Path(__file__).parent
RUNS_ON_SPARK = {"run_topology", "run_on_spark", "run_keeping"}


def read_tests(path: Path) -> dict[str, set[str]]:
    """Return the tests of a file, each with the fixtures that it takes."""
    functions = [node for node in ast.parse(path.read_text()).body if is_test(node)]
    return {node.name: {arg.arg for arg in node.args.args} for node in functions}  # type: ignore[attr-defined]


def is_test(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name.startswith("test_")


FILES = {path.stem: read_tests(path) for path in HERE.rglob("test_*.py")}


def test_each_file_that_can_shows_something_on_spark() -> None:
    able = {name for name, tests in FILES.items() if any(RUNS_ON_SPARK & t for t in tests.values())}
    assert set(ON_SPARK) == able, "enter the file in on_spark.py, with one of its tests at least"
    assert all(ON_SPARK.values())


@pytest.mark.parametrize("file", sorted(ON_SPARK))
def test_each_name_is_that_of_a_test_on_spark(file: str) -> None:
    for name in ON_SPARK[file]:
        fixtures = FILES[file][name.partition("[")[0]]
        assert fixtures & RUNS_ON_SPARK, name
        assert "run_on_spark" in fixtures or "[spark" in name, name
