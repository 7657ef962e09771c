"""Foreign text is shown by one module, whoever shows it."""

import ast
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import sparkstorm as ss
from sparkstorm.checkpoint.files import LocalFiles
from sparkstorm.cli.main import app
from sparkstorm.cli.screen import Screen
from sparkstorm.cli.state.commands import StateRow
from sparkstorm.cli.state.view import show_rows
from sparkstorm.dead_letters import DeadLetter, LetterStore, Unwritable
from sparkstorm.dead_letters.values import from_json
from sparkstorm.metrics import PartitionStatistics, Statistics, TaskMetrics
from sparkstorm.planning.plan import StreamKey
from sparkstorm.state.view import Item
from sparkstorm.tasks.report import LogLine
from sparkstorm.testing import LocalRunner
from sparkstorm.texts.logs import logger_of
from sparkstorm.texts.showing import as_json, shown, visible, visible_lines

PARTS = (
    "\ud800",
    "\x1b]0;title\x07",
    "\x1b]52;c;aGk=\x07",
    "\x1b[2J",
    "\x9b31m",
    "\x00\x7f\x85",
    "\r",
    "\nERROR: forged",
    "\u2028",
    "\u202e\u2066",
    "\u200b\u2060\ufeff",
    "\u3164\u034f",
    "[red]x[/red]",
    "[link=http://evil]x[/link]",
    "[/]",
    ":smile:",
)

TEXT = " ".join(("žluť 猫", *PARTS))


def harm_in(output: str, *, lines: bool = True) -> list[str]:
    """Return the characters of an output that nobody sees, but for the ends of lines."""
    allowed = "\n" if lines else ""
    unseen = {"\u3164", "\u034f"}
    return [c for c in output if (not c.isprintable() and c not in allowed) or c in unseen]


def forged_in(output: str) -> list[str]:
    """Return the lines that a text has begun itself."""
    return [line for line in output.splitlines() if line.startswith("ERROR: forged")]


# --- the functions -----------------------------------------------------------------------------


SRC = Path(__file__).parents[3] / "src" / "sparkstorm"

any_text = st.text(st.characters(exclude_categories=())) | st.sampled_from(PARTS)


@given(any_text)
def test_everything_in_a_line_can_be_seen(text: str) -> None:
    """Twice is the same as once, and every encoding of Unicode takes it."""
    line = visible(text)
    assert harm_in(line, lines=False) == []
    assert visible(line) == line
    line.encode()


@given(any_text)
def test_text_that_can_be_seen_stays(text: str) -> None:
    plain = "".join(c for c in text if not harm_in(c, lines=False) and not "\ufe00" <= c < "\ufe0f")
    plain = "".join(c for c in plain if visible(c) == c)
    assert visible(plain) == plain


@given(st.lists(any_text))
def test_no_line_of_several_begins_like_a_new_one(texts: list[str]) -> None:
    """Each but the first is indented, whatever kind of line end it has."""
    lines = visible_lines("\n".join(["first", *texts]), "    ")
    assert harm_in(lines) == []
    assert all(line.startswith("    ") for line in lines.split("\n")[1:])


@given(st.recursive(any_text, lambda inner: st.lists(inner) | st.dictionaries(any_text, inner)))
def test_json_is_the_very_value(value: object) -> None:
    """Only it is written so that nothing in it is raw."""
    for ascii_only in (False, True):
        line = as_json(value, ascii_only=ascii_only)
        assert json.loads(line) == json.loads(json.dumps(value))
        assert harm_in(line, lines=False) == []


def test_long_texts_are_cut() -> None:
    """Before they are worked on, and after, since escapes are longer."""
    assert len(visible("x" * 10**7)) == 10_000
    assert len(visible("\x00" * 10**7)) == 10_000
    assert len(shown(b"\xff" * 10**7)) == 200
    assert len(shown(["x" * 10**6] * 10**5)) == 200


class Odd(Exception):
    """Shows itself badly."""

    def __str__(self) -> str:
        raise SystemExit(3)

    __repr__ = __str__


def test_a_value_that_cannot_say_what_it_is_is_named_by_its_type() -> None:
    assert shown(Odd()) == "a Odd"
    assert shown(10**5000) == "a int"


def test_an_error_of_ours_can_be_shown_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    """Programs print it, Python does, and it comes back from other processes."""
    error = ss.CommitError(f"the broker said: {TEXT}")
    assert harm_in(f"{error}{error!r}{error.args}", lines=True) == []
    faults = ss.TopologyError([TEXT, TEXT]).faults
    assert harm_in("".join(faults)) == []


def test_a_record_of_a_log_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """By whatever handler: texts, errors, odd objects, traces."""
    logger = logger_of("sparkstorm.test")
    logger_of("sparkstorm.test")
    try:
        raise ValueError(TEXT)
    except ValueError as error:
        logger.warning("%s %r %s %.1f %s", TEXT, TEXT, error, 1.5, Odd())
        logger.error("%(a)s", {"a": TEXT})
        logger.exception("it failed")
    assert len(logger.filters) == 1
    lines = caplog.text.splitlines()
    assert harm_in(caplog.text) == []
    assert forged_in(caplog.text) == []
    starts = [line for line in lines if not line.startswith("    ")]
    assert len(starts) == 3
    assert "1.5 a Odd" in starts[0]
    assert any("ValueError: " in line for line in lines)


# --- the command line --------------------------------------------------------------------------

TERMINAL = {"FORCE_COLOR": "1", "TERM": "dumb", "COLUMNS": "200"}
"""Lets rich take stdout for a terminal, and write no sequences of its own."""


def hostile_letter() -> DeadLetter:
    failure = ss.Failure(
        reason=ss.Reason.ERROR,
        component=TEXT,
        message=TEXT,
        traceback=f"Traceback:\n  File x.py, line 1\nValueError: {TEXT}",
    )
    return DeadLetter(
        id="ab01",
        topology=TEXT,
        run="r1",
        spout=TEXT,
        task=0,
        stream=TEXT,
        fields=("text", TEXT),
        values=([TEXT, {TEXT: b"\xff\x1b"}], Unwritable("x.Odd", TEXT)),
        msg_id=(TEXT, 1),
        source={TEXT: TEXT},
        failure=failure,
        attempts=1,
        first_time=0.0,
        last_time=1.0,
        note=TEXT,
    )


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    """A checkpoint with a letter."""
    LetterStore(LocalFiles(tmp_path / "sparkstorm")).write([hostile_letter()])
    return tmp_path


@pytest.mark.parametrize("env", [TERMINAL, {"COLUMNS": "200"}], ids=["terminal", "pipe"])
@pytest.mark.parametrize("command", [["list"], ["show", "ab01"]])
def test_dead_letters_are_shown(letters: Path, command: list[str], env: dict[str, str]) -> None:
    """Nothing commands the terminal, nothing is taken for markup."""
    args = ["dead-letters", *command, "--checkpoint", str(letters)]
    result = CliRunner(env=env).invoke(app, args)
    assert result.exit_code == 0, result.output
    assert harm_in(result.output) == []
    assert forged_in(result.output) == []
    assert "ab01" in result.output
    if command[0] == "show":
        assert "\\ud800" in result.stdout
        assert "[link=http://evil]x[/link]" in result.stdout


@pytest.mark.process
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_any_encoding_of_stdout_will_do(letters: Path, encoding: str, more: list[str]) -> None:
    """What it lacks is escaped; JSON remains the very letter."""
    command = [sys.executable, "-m", "sparkstorm", "dead-letters", "show", "ab01", *more]
    done = subprocess.run(
        [*command, "--checkpoint", str(letters)],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "200"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    output = done.stdout.decode(encoding)
    assert harm_in(output) == []
    if more:
        assert json.loads(output) == json.loads(json.dumps(hostile_letter().to_json()))


@pytest.mark.parametrize("env", [TERMINAL, {}], ids=["terminal", "pipe"])
def test_state_is_shown(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    show_rows(iter([StateRow(0, Item(TEXT, (TEXT, b"\xff"), {TEXT: [TEXT]}))]))
    output = capsys.readouterr().out
    assert harm_in(output) == []
    assert forged_in(output) == []
    if not env:
        assert from_json(json.loads(output)["value"]) == {TEXT: [TEXT]}


@pytest.fixture
def screen() -> Screen:
    """The screen of a run."""
    builder = ss.TopologyBuilder()
    builder.set_spout("in", ss.spouts.IteratorSpout([], ["a"]))
    return Screen(builder.create_topology())


@pytest.mark.parametrize("env", [TERMINAL, {}], ids=["terminal", "pipe"])
def test_taps_are_shown(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of any object; as JSON it is the value itself."""
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    builder = ss.TopologyBuilder()
    builder.set_spout("in", ss.spouts.IteratorSpout([], ["a"]))
    inside: list[Any] = []
    inside += [inside, inside]
    values = [TEXT, {TEXT: TEXT}, {(TEXT, 1): TEXT}, Odd(), {Odd: [Odd()]}, inside, 10**5000]
    Screen(builder.create_topology()).tap(
        StreamKey("in", "default"), 0, [(value,) for value in values]
    )
    captured = capsys.readouterr()
    output = captured.err if env else captured.out
    assert harm_in(output) == []
    assert len(output.splitlines()) == len(values)
    if not env:
        shown_values = [json.loads(line)["values"]["a"] for line in output.splitlines()]
        assert shown_values[:2] == values[:2]


def test_lines_of_components_and_of_the_engine_are_shown(
    screen: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a component logs is one line, and its traceback is indented."""
    screen.log(LogLine("parse", 1, "error", TEXT, f"Traceback\n{TEXT}"))
    screen.log(LogLine("parse", 1, "print", TEXT))
    screen.log(LogLine(TEXT, 1, TEXT, TEXT))
    screen.note("warning", TEXT)
    screen.status(TEXT)
    output = capsys.readouterr().err
    assert harm_in(output) == []
    assert forged_in(output) == []
    assert "[red]x[/red]" in output
    assert len([line for line in output.splitlines() if not line.startswith("    ")]) == 5


def test_the_summary_is_shown(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    partition = PartitionStatistics(
        partition=TEXT, lag=1, committed=1, oldest=3, held_by=TEXT, held_why=TEXT
    )
    statistics = Statistics(
        dead_letters=1,
        partitions={TEXT: (partition,)},
        components={TEXT: {0: TaskMetrics()}},
    )
    screen.summary("words", statistics, f"--checkpoint {TEXT}")
    output = capsys.readouterr().err
    assert harm_in(output) == []
    assert forged_in(output) == []
    assert "[red]x[/red]" in output


@pytest.mark.parametrize("verbose", [[], ["--verbose"]])
def test_an_error_of_a_command_is_shown(tmp_path: Path, verbose: list[str]) -> None:
    """Of ours and of anybody's, with its trace."""
    path = tmp_path / "bad.py"
    path.write_text(f"raise ValueError({TEXT!a})")
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["explain", str(path), *verbose])
    assert result.exit_code == 2
    assert harm_in(result.output) == []
    assert forged_in(result.output) == []
    assert "[link=http://evil]x[/link]" in result.output


def test_what_a_bolt_logs_reaches_the_log_as_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """And so does why its messages failed."""

    class Parse(ss.BasicBolt):
        def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
            logging.getLogger("app").warning("odd: %s", tup["a"])
            try:
                raise ValueError(tup["a"])
            except ValueError:
                logging.getLogger("app").exception("once more")
                raise

    builder = ss.TopologyBuilder()
    text = TEXT.replace("\ud800", "")  # pytest keeps the records of "app", and cannot send that
    builder.set_spout("in", ss.spouts.IteratorSpout([(text,)], ["a"]))
    builder.set_bolt("parse", Parse()).shuffle_grouping("in")
    config = ss.Config(max_retries=0, dead_letters="off")
    with LocalRunner(builder.create_topology(), config=config) as runner:
        runner.run_until_idle()
    ours = [record for record in caplog.records if record.name.startswith("sparkstorm")]
    output = "\n".join(map(logging.Formatter("%(name)s: %(message)s").format, ours))
    assert harm_in(output) == []
    assert forged_in(output) == []
    assert "sparkstorm.topology.parse: odd: žluť" in output
    assert "a message failed" in output
    assert "    Traceback" in output


def test_a_message_that_cannot_be_written_as_text_becomes_a_record() -> None:
    """The headers of a dead letter are for people; its value is the payload."""
    pytest.importorskip("confluent_kafka")
    from sparkstorm.kafka.letters import _record_of

    _, value, key, headers, *_ = _record_of(hostile_letter(), "dead")
    assert key is not None
    assert value is not None
    for name, data in headers:
        text = (data or b"").decode()
        # a stack trace has lines, as Kafka Connect's has
        lines = text.split("\n") if name.endswith("exception.stacktrace") else [text]
        assert [harm for line in lines for harm in harm_in(f"{name}{line}")] == []
    assert from_json(json.loads(value))["text"][0] == TEXT


# --- who may print and log ---------------------------------------------------------------------

FORBIDDEN = {
    **dict.fromkeys(("print", "input", "typer.echo", "typer.secho"), "cli/terminal.py"),
    **dict.fromkeys(("typer.confirm", "typer.prompt", "Console"), "cli/terminal.py"),
    **dict.fromkeys(("sys.stdout.write", "sys.stderr.write"), "cli/terminal.py"),
    **dict.fromkeys(("sys.__stdout__.write", "sys.__stderr__.write"), "cli/terminal.py"),
    **dict.fromkeys(("sys.stdout.writelines", "sys.stderr.writelines"), "cli/terminal.py"),
    **dict.fromkeys(("traceback.print_exc", "traceback.print_exception"), "nobody"),
    **dict.fromkeys(("os.write", "rich.print", "click.echo", "print_exc"), "nobody"),
    **{f"logging.{name}": "nobody" for name in ("debug", "info", "warning", "error", "exception")},
    **{f"logging.{name}": "nobody" for name in ("critical", "log")},
}
"""Calls that show text, and the module that may make them."""

PROGRAMS = {
    "multilang/serving/pipe.py",
    "multilang/serving/serve.py",
    "processes/keeper.py",
    "testing/shells/probes.py",
}
"""Programs of their own: their output is a pipe to whoever started them, not a screen."""

ALLOWED = {
    ("tasks/report.py", "sys.stderr.write"),
    ("processes/pipes.py", "os.write"),
    ("spark/driver/jvm.py", "logging.getLogger"),
    ("queues/rabbitmq/broker.py", "logging.getLogger"),
}
"""A component's lines where a program has set up no logging; loggers that py4j and pika have."""


def showing_calls(source: str, place: str) -> Iterator[str]:
    """Yield the calls in a module that show text past the one place."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if (place, name) in ALLOWED:
            continue
        if FORBIDDEN.get(name, place) != place and place not in PROGRAMS:
            yield f"{place}:{node.lineno} calls {name}"
        named = [ast.unparse(arg) for arg in node.args]
        if name.endswith("getLogger") and named and place != "texts/logs.py":
            yield f"{place}:{node.lineno} makes a logger: use logger_of"
        if name == "json.dumps" and place.startswith("cli/") and place != "cli/terminal.py":
            yield f"{place}:{node.lineno} writes JSON: use write_json"


def test_nothing_else_shows_text() -> None:
    """The command line prints by its terminal alone, and every logger comes from ``logs``."""
    found = [
        call
        for path in sorted(SRC.rglob("*.py"))
        for call in showing_calls(path.read_text(), str(path.relative_to(SRC)))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("cli/run.py", "print(x)"),
        ("cli/run.py", "typer.echo(x)"),
        ("cli/run.py", "sys.stdout.write(x)"),
        ("cli/run.py", "Console().print(x)"),
        ("cli/edge.py", "traceback.print_exc()"),
        ("cli/state/view.py", "json.dumps(x)"),
        ("batches/x.py", "logging.getLogger(__name__)"),
        ("batches/x.py", "logging.warning(x)"),
    ],
)
def test_the_check_catches(place: str, source: str) -> None:
    assert len([*showing_calls(source, place)]) == 1
