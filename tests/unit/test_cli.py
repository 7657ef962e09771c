"""The command line without Spark: what it refuses, explains and writes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sparkstorm._version import __version__, is_compiled
from sparkstorm.cli.main import app

GOOD = """
import sparkstorm as ss

class Echo(ss.BasicBolt):
    outputs = "n long"

    def execute(self, tup, collector):
        collector.emit([tup["n"]])

def topology(args):
    builder = ss.TopologyBuilder()
    numbers = range(int(args[0]) if args else 3)
    builder.set_spout("numbers", ss.spouts.IteratorSpout(numbers, "n long"))
    builder.set_bolt("echo", Echo()).shuffle_grouping("numbers")
    return builder.create_topology()
"""


@pytest.fixture
def good(tmp_path: Path) -> str:
    return write(tmp_path / "good.py", GOOD)


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading a topology extends the module path: undo it."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def sparkstorm(*args: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, args)


def assert_refused(result: Result, *words: str) -> None:
    """It ends with code 2 and one line without a trace that has all the words."""
    assert result.exit_code == 2, result.output
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("sparkstorm: ")]
    assert [word for word in words if word not in line] == []
    assert "Traceback" not in result.output


def test_no_such_file_is_refused() -> None:
    assert_refused(sparkstorm("run", "nowhere.py"), "nowhere.py", "no such file")


def test_no_such_module_is_refused() -> None:
    assert_refused(sparkstorm("explain", "nowhere.at_all:topology"), "nowhere.at_all")


@pytest.mark.parametrize("place", ["orders.py", "package/__init__.py"])
def test_a_module_beside_a_folder_of_its_name_is_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The folder holds its data, or is the package itself."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / place).parent.mkdir(exist_ok=True)
    write(tmp_path / place, GOOD)
    name = place.partition(".py")[0].partition("/")[0]
    (tmp_path / name).mkdir(exist_ok=True)
    assert sparkstorm("explain", f"{name}:topology").exit_code == 0


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert_refused(sparkstorm("explain", str(tmp_path)), "is a folder", "Python file")


@pytest.mark.process
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_while_the_topology_is_loaded_ends_the_command(
    tmp_path: Path, number: str
) -> None:
    """A container's first process would not even end by a signal that it does not heed."""
    body = f"import os, signal\nos.kill(os.getpid(), signal.{number})\n{GOOD}"
    command = [sys.executable, "-m", "sparkstorm", "run", write(tmp_path / "slow.py", body)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr.startswith("sparkstorm: stopped at once")


def test_a_file_without_topology_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "empty.py", "x = 1\n")
    assert_refused(sparkstorm("run", path), "empty.py", "'topology'", "create_topology()")


def test_a_topology_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "kind.py", "topology = 3\n")
    assert_refused(sparkstorm("run", path), "'topology'", "is a int")


def test_a_file_that_raises_is_refused_with_the_line(tmp_path: Path) -> None:
    path = write(tmp_path / "raises.py", "a = 1\nraise ValueError('no luck')\n")
    assert_refused(sparkstorm("run", path), "line 2", "raises.py", "ValueError: no luck")


def test_a_missing_input_is_refused_before_spark_starts(tmp_path: Path) -> None:
    reading = 'ss.spouts.LinesSpout("/no/such/file")'
    path = write(
        tmp_path / "lines.py",
        GOOD.replace('ss.spouts.IteratorSpout(numbers, "n long")', reading),
    )
    result = sparkstorm("run", path, "--available-now")
    assert_refused(result, "cannot read '/no/such/file'", "No such file")
    assert "starting Spark" not in result.stderr


@pytest.mark.process
def test_verbose_shows_the_trace(tmp_path: Path) -> None:
    path = write(tmp_path / "raises.py", "raise ValueError('no luck')\n")
    command = [sys.executable, "-m", "sparkstorm", "explain", path, "--verbose"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "Traceback" in done.stderr


def test_a_miswired_topology_is_refused(tmp_path: Path) -> None:
    path = write(
        tmp_path / "wired.py", GOOD.replace('shuffle_grouping("numbers")', "set_num_tasks(0)")
    )
    assert_refused(sparkstorm("run", path), "echo")


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("nonsense", ("'nonsense'", "KEY=VALUE")),
        ("max_retry=3", ("'max_retry'", "'max_retries'")),
        ("topology.max.retries=many", ("max", "retries", "'many'")),
    ],
)
def test_a_bad_setting_is_refused(good: str, setting: str, words: tuple[str, ...]) -> None:
    assert_refused(sparkstorm("run", good, "-c", setting), *words)


@pytest.mark.parametrize("name", ["a/b", "..", "", "a b"])
def test_a_name_with_path_characters_is_refused(good: str, name: str) -> None:
    assert_refused(sparkstorm("run", good, "--name", name), repr(name), "topology name")


def test_an_unknown_component_to_tap_is_refused(good: str) -> None:
    assert_refused(sparkstorm("run", good, "--tap", "nobody"), "'nobody'", "numbers, echo")


def test_arguments_that_nobody_takes_are_refused(tmp_path: Path) -> None:
    path = write(
        tmp_path / "fixed.py",
        GOOD.replace("args[0]", "3").replace("topology(args)", "f(args)") + "topology = f([])\n",
    )
    assert_refused(sparkstorm("explain", path, "--", "7"), "takes no arguments", "--")


def test_missing_java_is_refused(
    good: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert_refused(sparkstorm("run", good), "Java 17", "JAVA_HOME")


def test_explain_prints_the_plan(good: str) -> None:
    result = sparkstorm("explain", good, "-c", "partitions=3", "--", "5")
    assert result.exit_code == 0
    assert result.stdout.startswith("topology good: 3 partitions, tracked by 3 ackers")
    assert "→ echo by shuffle" in result.stdout


def test_explain_draws_it(good: str) -> None:
    result = sparkstorm("explain", good, "--mermaid")
    assert result.stdout.startswith("flowchart LR")


def test_a_topology_is_found_in_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "wiring_of_mine.py", GOOD)
    monkeypatch.chdir(tmp_path)
    result = sparkstorm("explain", "wiring_of_mine:topology")
    assert result.stdout.startswith("topology wiring_of_mine:")


@pytest.mark.process
def test_a_new_project_is_written_and_its_test_passes(tmp_path: Path) -> None:
    folder = tmp_path / "hello"
    assert sparkstorm("new", str(folder)).exit_code == 0
    assert {path.name for path in folder.iterdir()} >= {"topology.py", "README.md"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert "1 passed" in done.stdout, done.stdout
    assert_refused(sparkstorm("new", str(folder)), "not an empty folder")


def test_it_tells_its_version_and_whether_it_is_compiled() -> None:
    how = "compiled" if is_compiled() else "plain Python"
    assert sparkstorm("--version").stdout.strip() == f"sparkstorm {__version__} ({how})"


@pytest.mark.parametrize("command", [[], ["run"], ["explain"], ["new"]])
def test_every_help_has_an_example(command: list[str]) -> None:
    assert "Example: sparkstorm" in sparkstorm(*command, "-h").stdout


@pytest.mark.parametrize("argument", ["text", "=x"])
def test_a_property_without_a_name_or_value_is_refused(tmp_path: Path, argument: str) -> None:
    """Its value would be an empty text."""
    path = write(tmp_path / "words.yaml", "name: ${text}")
    assert_refused(sparkstorm("explain", path, "--", argument), argument, "write NAME=VALUE")


def test_the_table_of_a_queue_is_printed() -> None:
    """Names are quoted, so that any name of a table works."""
    result = sparkstorm("postgres-queue-ddl", 'app.my "jobs"', "--done", "done_at")
    assert 'CREATE TABLE "app"."my ""jobs"""' in result.stdout
    assert '"done_at" timestamptz' in result.stdout
    assert sparkstorm("postgres-queue-ddl", "app.").exit_code == 2
