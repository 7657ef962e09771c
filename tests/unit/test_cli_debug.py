"""``sparkstorm debug``: real sessions of pdb, and the tests that it writes."""

import ast
import datetime
import errno
import importlib.util
import json
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from typer.testing import CliRunner, Result

import sparkstorm as ss
from sparkstorm.checkpoint.files import LocalFiles
from sparkstorm.cli.main import app
from sparkstorm.dead_letters import DeadLetter, LetterStore, Unwritable
from sparkstorm.dead_letters.origin import Origin

TOPOLOGY = """
import sparkstorm as ss
from sparkstorm.kafka import KafkaBolt
from sparkstorm.multilang import ShellBolt


class Split(ss.BasicBolt):
    outputs = "word string"

    def execute(self, tup, collector):
        for word in tup["line"].split():
            collector.emit([word])


class Parse(ss.BasicBolt):
    outputs = "n long"

    def execute(self, tup, collector):
        text = tup["word"]
        collector.emit([int(text)])


class AsyncParse(ss.BasicBolt):
    outputs = "n long"

    async def execute(self, tup, collector):
        text = tup["word"]
        collector.emit([int(text)])


class Refuse(ss.Bolt):
    def execute(self, tup):
        if not tup["word"].isdigit():
            self.collector.fail(tup, "not a number")
        else:
            self.collector.ack(tup)


class AtTheEnd(ss.Bolt):
    def prepare(self, config, context, collector):
        self.seen = []

    def execute(self, tup):
        self.seen.append(tup["word"])
        self.collector.ack(tup)

    def finish_batch(self):
        seen, self.seen = self.seen, []
        sum(map(int, seen))


class Wrong(ss.BasicBolt):
    outputs = "n long"

    def execute(self, tup, collector):
        collector.emit([tup["word"]])


class Write(ss.bolts.BulkWriterBolt):
    transient = ("_waiting",)

    def write(self, tuples):
        open(__file__ + ".written", "w").close()


class Stage(ss.CommitterBolt):
    def stage(self, tup):
        return int(tup["word"])

    def commit(self, transaction, staged):
        raise AssertionError("debug commits nothing")

    def connect(self, config):
        raise AssertionError("debug connects to nothing")


class Far(ss.PartitionedSpout):
    outputs = "line string"
    replayable = True

    def open(self, *_):
        raise AssertionError("debug opens no spout")

    def plan(self, limit):
        return []

    def read(self, split):
        return []


def topology(args):
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", Far())
    builder.set_bolt("split", Split()).shuffle_grouping("lines")
    for name, bolt in (
        ("parse", Parse()),
        ("awaited", AsyncParse()),
        ("refuse", Refuse()),
        ("end", AtTheEnd()),
        ("wrong", Wrong()),
        ("write", Write()),
        ("shell", ShellBolt("cat", outputs="x string")) if args else ("stage", Stage()),
    ):
        builder.set_bolt(name, bolt).shuffle_grouping("split")
    kafka = KafkaBolt("t", bootstrap_servers="k:1", value="word")
    builder.set_bolt("sink", kafka).shuffle_grouping("split")
    builder.set_bolt("behind", Refuse()).shuffle_grouping("wrong")
    return builder
"""


def letter(component: str, *values: Any, **changes: Any) -> DeadLetter:
    failure = ss.Failure(
        reason=ss.Reason.ERROR, component=component, task=3, message="ValueError: no number"
    )
    facts: dict[str, Any] = {
        "id": f"{component}01",
        "topology": "shop",
        "run": "r1",
        "spout": "lines",
        "task": 0,
        "stream": "default",
        "fields": ("line",),
        "values": values or ("1 two 3",),
        "failure": failure,
        "attempts": 4,
        "first_time": time.time() - 100,
        "last_time": time.time(),
    }
    return DeadLetter(**{**facts, **changes})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a topology, and a checkpoint with a letter for each of its bolts."""
    (tmp_path / "topology.py").write_text(TOPOLOGY)
    return tmp_path


def keep(place: Path, *letters: DeadLetter) -> None:
    LetterStore(LocalFiles(place / "cp" / "sparkstorm")).write(letters)


def debug(place: Path, *args: str | Path, answers: str = "") -> Result:
    command = ["debug", str(args[0]), str(place / "topology.py"), "--checkpoint", str(place / "cp")]
    runner = CliRunner(env={"COLUMNS": "200"})
    return runner.invoke(app, [*command, *map(str, args[1:])], input=answers)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_it_stops_where_the_failing_call_begins(place: Path) -> None:
    """Not in the call before, which goes well; one steps on with the tuple at hand."""
    keep(place, letter("parse"))
    result = debug(place, "parse", answers="p tup['word']\nn\np text.upper()\nq\n")
    assert result.exit_code == 0, result.output
    assert "execute()\n-> text = tup" in result.stdout
    assert "'two'" in result.stdout
    assert "'TWO'" in result.stdout
    assert "ValueError: invalid literal" in result.stderr


def test_continue_leads_to_the_line_that_raises(place: Path) -> None:
    """With its locals alive."""
    keep(place, letter("parse"))
    result = debug(place, "parse", answers="c\np text\np tup\nq\n")
    assert result.exit_code == 0, result.output
    assert "-> collector.emit([int(text)])" in result.stdout
    assert "Tuple(split/default: word='two')" in result.stdout


def test_an_async_bolt_is_stepped_through_as_well(place: Path) -> None:
    keep(place, letter("awaited"))
    result = debug(place, "awaited", answers="p tup['word']\nc\np text\nq\n")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("'two'") == 2


def test_a_failure_without_an_error_stops_in_its_call(place: Path) -> None:
    keep(place, letter("refuse"))
    result = debug(place, "refuse", answers="n\nn\np tup['word']\nc\n")
    assert result.exit_code == 0, result.output
    assert "'two'" in result.stdout
    assert "not a number" in result.stderr


def test_an_error_behind_execute_stops_in_its_own_method(place: Path) -> None:
    keep(place, letter("end"))
    result = debug(place, "end", answers="n\np seen\nq\n")
    assert result.exit_code == 0, result.output
    assert "finish_batch()" in result.stdout
    assert "['1', 'two', '3']" in result.stdout


def test_values_that_do_not_fit_stop_in_the_call_that_emits(place: Path) -> None:
    keep(place, letter("wrong"))
    result = debug(place, "wrong", answers="p tup['word']\nq\n")
    assert result.exit_code == 0, result.output
    assert "-> collector.emit([tup" in result.stdout
    assert "'n'" in result.stderr


def test_a_committer_stages_and_does_not_commit(place: Path) -> None:
    """The debugger stops in the user's ``stage``, not in the engine's ``execute``."""
    keep(place, letter("stage"))
    before = contents(place / "cp")
    result = debug(place, "stage", answers="p tup['word']\nc\nq\n")
    assert result.exit_code == 0, result.output
    assert "stage()\n-> return int(" in result.stdout
    assert "'two'" in result.stdout
    assert contents(place / "cp") == before


def test_a_bulk_writer_writes_only_if_the_user_goes_on(place: Path) -> None:
    keep(place, letter("write"))
    result = debug(place, "write", answers="p len(tuples)\nq\n")
    assert result.exit_code == 0, result.output
    assert "write()\n-> open(" in result.stdout
    assert "writes for real" in result.stderr
    assert not list(place.glob("*.written"))


def test_a_message_that_passes_says_so(place: Path) -> None:
    keep(place, letter("parse", "1 2 3"))
    result = debug(place, "parse")
    assert result.exit_code == 0, result.output
    assert "does not fail any more: it passes 'parse'" in result.stdout


def test_break_stops_in_a_bolt_that_goes_well(place: Path) -> None:
    keep(place, letter("parse"))
    result = debug(place, "parse", "--break", "split", answers="p tup['line']\nc\n")
    assert result.exit_code == 0, result.output
    assert "'1 two 3'" in result.stdout
    assert "execute has returned without an error" in result.stderr


@pytest.mark.process
def test_a_message_that_ends_its_process_is_not_run_ahead(place: Path) -> None:
    """The debugger stops before; and no test of it is written, which would end pytest."""
    text = TOPOLOGY.replace("collector.emit([int(text)])", "__import__('os')._exit(7)")
    (place / "topology.py").write_text(text)
    lost = ss.Failure(reason=ss.Reason.LOST, message="the process ended")
    keep(place, letter("parse", failure=lost))
    with session(place, "parse", "--break", "parse") as terminal:
        terminal.wait_for("(Pdb) ")
        terminal.type("p tup['word']\n")
        terminal.wait_for("'1'")
        terminal.type("c\n")
        assert terminal.end() == 7
    refused = debug(place, "parse", "--break", "parse", "--test", place / "test_lost.py")
    assert refused.exit_code == 2
    assert "might end pytest" in refused.stderr
    assert "names no component (lost)" in debug(place, "parse").stderr


def test_another_debugger_is_taken(place: Path) -> None:
    """Also a class that knows nothing of modules to skip."""
    (place / "mine.py").write_text(
        "import pdb\nclass Mine(pdb.Pdb):\n"
        "    def __init__(self):\n        super().__init__()\n        self.prompt = '(Mine) '\n"
    )
    keep(place, letter("parse"))
    result = debug(place, "parse", "--pdbcls", "mine:Mine", answers="s\np tup['word']\nq\n")
    assert result.exit_code == 0, result.output
    assert "(Mine) " in result.stdout
    assert "'two'" in result.stdout


def test_prints_of_the_bolt_reach_the_terminal(place: Path) -> None:
    keep(place, letter("parse"))
    result = debug(place, "parse", answers="!print('seen', tup['word'])\nq\n")
    assert "seen two" in result.stdout


@pytest.mark.parametrize(
    ("component", "changes", "args", "words"),
    [
        ("sink", {}, (), "writes to Kafka, and debug writes nothing"),
        ("shell", {}, ("--", "with shell"), "a shell bolt: its code runs in a child process"),
        ("lines", {}, (), "is a spout"),
        ("gone", {}, (), "no component 'gone'"),
        ("", {"id": "01"}, (), "names no component (error): choose the bolt"),
        ("parse", {"values": None, "note": "source away"}, (), "source away"),
        ("parse", {"values": (Unwritable("a.B", "<B>"),)}, (), "cannot be written as JSON"),
        ("parse", {"fields": ("text",)}, (), "other fields now: line"),
        ("parse", {"spout": "others"}, (), "no spout 'others'"),
        ("parse", {}, ("--break", "nowhere"), "no component 'nowhere'"),
        ("parse", {}, ("--pdbcls", "nowhere:Pdb"), "module:Class"),
        ("parse", {}, ("--pdbcls", "json"), "module:Class"),
        ("parse", {}, ("--pdbcls", "pdb:Pdb", "--listen", "5678"), "two debuggers"),
    ],
)
def test_a_mistake_is_one_sentence(
    place: Path, component: str, changes: dict[str, Any], args: tuple[str, ...], words: str
) -> None:
    keep(place, letter(component, **changes))
    result = debug(place, changes.get("id", f"{component}01"), *args)
    assert result.exit_code == 2, result.output
    assert words in " ".join(result.stderr.split())
    assert "Traceback" not in result.output


@pytest.mark.skipif(importlib.util.find_spec("debugpy") is not None, reason="debugpy is installed")
def test_a_missing_debugpy_is_named(place: Path) -> None:
    keep(place, letter("parse"))
    result = debug(place, "parse", "--listen", "5678")
    assert result.exit_code == 2
    assert "pip install debugpy" in result.stderr


@pytest.mark.process
def test_a_session_on_a_terminal(place: Path) -> None:
    """The whole program on a terminal of its own, with keys that a person would press."""
    keep(place, letter("parse"))
    with session(place, "parse") as terminal:
        terminal.wait_for("(Pdb) ")
        terminal.type("p tup['word']\n")
        terminal.wait_for("'two'")
        terminal.type("q\n")
        assert terminal.end() == 0


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, command: list[str], cwd: Path) -> None:
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, start_new_session=True
        )
        os.close(theirs)
        self.text = ""

    def wait_for(self, words: str) -> None:
        """Read until the words were written, and forget all before them."""
        while words not in self.text:
            more = self._read()
            assert more, f"it ended without {words!r}: {self.text}"
            self.text += more
        self.text = self.text.partition(words)[2]

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def end(self) -> int:
        while more := self._read():
            self.text += more
        os.close(self._ours)
        return self._process.wait()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _read(self) -> str:
        try:
            return os.read(self._ours, 4096).decode()
        except OSError as error:  # Linux says so when the other end is closed
            if error.errno != errno.EIO:
                raise
            return ""


@contextmanager
def session(place: Path, id_: str, *options: str) -> Iterator[Terminal]:
    command = [sys.executable, "-m", "sparkstorm.cli.main", "debug", id_, "topology.py"]
    terminal = Terminal([*command, "--checkpoint", "cp", *options], place)
    try:
        yield terminal
    finally:
        terminal.kill()


# --- the tests that it writes --------------------------------------------------------------------


HOSTILE: tuple[Any, ...] = (
    "two \"quotes\" 'and' more\n\x00\u202e\ud800 \\ {x} '''\"\"\"",
    b"\xff\x00'\"",
    float("nan"),
    float("-inf"),
    10**400,
    Decimal("-1.50"),
    datetime.datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    datetime.timedelta(days=-1, microseconds=3),
    ("runpy.", ("datetime.date",), {"Config.": {1, 2}, 3: frozenset({"x"})}),
    [[[{}]], set(), ()],
)


def run_pytest(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", path.name],
        cwd=path.parent,
        capture_output=True,
        text=True,
        check=False,
    )


def ruff(path: Path) -> str:
    """Return what ruff says of the file, by its own defaults."""
    done = [
        subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--isolated", str(path)],
            cwd=path.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        for command in (
            ["check", "-q", "--select", "E4,E7,E9,F,I,UP,B,SIM,RET,PT,RUF100"],
            ["format", "-q", "--diff"],
        )
    ]
    return "".join(one.stdout + one.stderr for one in done)


@pytest.mark.process
def test_the_test_fails_until_the_bolt_is_mended(place: Path) -> None:
    keep(place, letter("parse"))
    path = place / "test_parse.py"
    result = debug(place, "parse", "--test", path)
    assert result.exit_code == 0, result.output
    done = run_pytest(path)
    assert done.returncode == 1, done.stdout
    assert "E       ValueError: invalid literal for int() with base 10: 'two'" in done.stdout
    assert "sparkstorm/tasks" not in done.stdout
    (place / "topology.py").write_text(TOPOLOGY.replace("int(text)", "len(text)"))
    assert run_pytest(path).returncode == 0
    assert ruff(path) == ""


@pytest.mark.process
def test_hostile_payloads_come_back(place: Path) -> None:
    """The fixture holds the very values, and the file is one that ruff would not change."""
    fields = tuple(f"f{i}" for i in range(len(HOSTILE)))
    ending = ss.Failure(reason=ss.Reason.FAILED, component="parse", message='"""\\ \n\x1b[2J')
    given = letter("parse", *HOSTILE, fields=fields, failure=ending)
    (place / "topology.py").write_text(
        "import sparkstorm as ss\n"
        "class See(ss.BasicBolt):\n"
        "    def execute(self, tup, collector):\n"
        "        raise ValueError\n"
        "b = ss.TopologyBuilder()\n"
        f"b.set_spout('lines', ss.spouts.IteratorSpout([], {', '.join(fields)!r}))\n"
        "b.set_bolt('parse', See()).shuffle_grouping('lines')\n"
        "topology = b.create_topology()\n"
    )
    keep(place, given)
    path = place / "test_hostile.py"
    result = debug(place, "parse", "--test", path)
    assert result.exit_code == 0, result.output
    assert ruff(path) == ""
    spec = importlib.util.spec_from_file_location("test_hostile_letter", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    payload = module.payload.__wrapped__()
    assert list(map(repr, payload.values())) == list(map(repr, HOSTILE))


def test_a_long_payload_lies_beside_the_test(place: Path) -> None:
    """As the letter's own JSON, which anyone can read."""
    line = "two " * 5_000
    keep(place, letter("parse", line))
    path = place / "test_long.py"
    result = debug(place, "parse", "--test", path)
    assert result.exit_code == 0, result.output
    assert json.loads((place / "test_long.json").read_text())["values"] == [line]
    text = path.read_text()
    assert 'read_payload(Path(__file__).parent / "test_long.json")' in text
    assert len(text) < 2_000
    ast.parse(text)


def test_a_file_that_is_there_stays(place: Path) -> None:
    keep(place, letter("parse"))
    path = place / "test_parse.py"
    path.write_text("mine")
    result = debug(place, "parse", "--test", path)
    assert result.exit_code == 2
    assert re.search("is there already", result.stderr)
    assert path.read_text() == "mine"


# --- without naming the topology -----------------------------------------------------------------


def bare_debug(place: Path, *args: str | Path, answers: str = "") -> Result:
    command = ["debug", *map(str, args), "--checkpoint", str(place / "cp")]
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, command, input=answers)


def note_origin(place: Path, **changes: Any) -> Path:
    """Note the topology's file as a run does; return the note."""
    facts = {"target": str(place / "topology.py"), "folder": str(place), **changes}
    Origin.write(Origin(**facts), LetterStore(LocalFiles(place / "cp" / "sparkstorm")))
    return place / "cp" / "sparkstorm" / "dead-letters" / "topology.json"


def test_the_file_of_the_last_run_is_known(place: Path) -> None:
    """And debug says which file it runs, before it does."""
    keep(place, letter("parse"))
    note_origin(place)
    result = bare_debug(place, "parse", answers="p tup['word']\nq\n")
    assert result.exit_code == 0, result.output
    assert "'two'" in result.stdout
    assert f"loading '{place / 'topology.py'}'" in result.stderr


def test_the_arguments_of_the_last_run_are_known(place: Path) -> None:
    """With an argument, the topology has a shell bolt, in which no debugger stops."""
    keep(place, letter("shell"))
    note_origin(place, args=["any"])
    result = bare_debug(place, "shell")
    assert result.exit_code == 2
    assert "is a shell bolt" in result.stderr
    assert "with the arguments ['any']" in result.stderr


def test_a_named_file_wins_over_that_of_the_last_run(place: Path) -> None:
    keep(place, letter("parse"))
    note_origin(place, target=str(place / "gone.py"))
    result = debug(place, "parse", answers="q\n")
    assert result.exit_code == 0, result.output


def test_an_unknown_file_has_to_be_named(place: Path) -> None:
    keep(place, letter("parse"))
    result = bare_debug(place, "parse")
    assert result.exit_code == 2
    assert "the topology's file is not known" in result.stderr


def test_no_file_is_run_that_others_may_have_named(place: Path) -> None:
    """The message names it, and leaves the choice to people."""
    keep(place, letter("parse"))
    (place / "evil.py").write_text(f"open({str(place / 'ran')!r}, 'w').close()\n")
    note_origin(place, target=str(place / "evil.py")).chmod(0o666)
    result = bare_debug(place, "parse")
    assert result.exit_code == 2
    assert "others may have written that" in result.stderr
    assert str(place / "evil.py") in result.stderr
    assert not (place / "ran").exists()


def test_secret_arguments_are_not_noted(place: Path) -> None:
    """So the file, its arguments and its settings have to be named again."""
    keep(place, letter("parse"))
    note = note_origin(place, args=["amqp://me:geheim@host/"], settings=["x.password=geheim"])
    assert "geheim" not in note.read_text()
    result = bare_debug(place, "parse")
    assert result.exit_code == 2
    assert "look secret" in result.stderr


def test_a_damaged_note_is_no_note(place: Path) -> None:
    keep(place, letter("parse"))
    note = note_origin(place)
    note.write_bytes(note.read_bytes().replace(b"topology.py", b"topology.px"))
    assert "is not known" in bare_debug(place, "parse").stderr


def test_a_letter_is_found_by_the_spouts_name_for_the_message(place: Path) -> None:
    keep(place, letter("parse", msg_id=("orders", 0, 42)), letter("wrong", msg_id="order-7"))
    note_origin(place)
    result = bare_debug(place, "orders/0/42", answers="q\n")
    assert result.exit_code == 0, result.output
    assert "dead letter parse01" in result.stderr
