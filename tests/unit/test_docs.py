"""The documentation says what is true: its examples run, its tables are those of the code."""

import doctest
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page: Path) -> None:
    """Every ``>>>`` on the page does what it shows."""
    result = doctest.testfile(str(page), module_relative=False, optionflags=FLAGS)
    assert result.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file of the repository."""
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    missing = [x for x in links if "://" not in x and not (page.parent / x).exists()]
    assert missing == []


@pytest.mark.parametrize("page", ["architecture", "internals"])
def test_the_files_that_a_page_names_are_there(page: str) -> None:
    """Those of the package by their path in it, tests by theirs in the repository."""
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)+\.py)`", text))
    assert len(named) > 15
    roots = ROOT / "src/sparkstorm", ROOT
    assert [n for n in sorted(named) if not any((root / n).exists() for root in roots)] == []


def test_the_configuration_page_is_up_to_date() -> None:
    """If not: python scripts/configuration_docs.py."""
    page = runpy.run_path(str(ROOT / "scripts/configuration_docs.py"))["page"]
    assert (ROOT / "docs/configuration.md").read_text(encoding="utf-8") == page()


def test_the_drawings_of_the_architecture_are_up_to_date() -> None:
    """If not: python scripts/architecture_docs.py."""
    page = runpy.run_path(str(ROOT / "scripts/architecture_docs.py"))["page"]
    assert (ROOT / "docs/architecture.md").read_text(encoding="utf-8") == page()


def test_the_example_of_the_readme_wires_a_topology() -> None:
    """Its snippet is run on Spark by tests/e2e/test_examples.py; here it is only loaded."""
    (snippet,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    names: dict[str, object] = {"__name__": "snippet"}
    exec(snippet, names)  # noqa: S102 - our own text
    assert str(names["topology"]) == "Topology(lines, split, count)"


def test_the_guarantees_name_tests_that_exist() -> None:
    """Each is a file, or a function in one; the slow ones, and no others, are marked so."""
    text = (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`( \*\(slow\)\*)?", text)
    assert len(named) > 25
    for file, function, slow in named:
        source = (ROOT / file).read_text(encoding="utf-8")
        if function:
            marks, found, _ = source.partition(f"def {function}(")
            assert found, f"{file}::{function}"
            above = marks.rpartition("\n\n\n")[2]
            assert bool(slow) == ("@pytest.mark.slow" in above), f"{file}::{function}"
