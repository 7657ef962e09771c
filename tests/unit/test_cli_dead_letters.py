"""``sparkstorm dead-letters`` on folders of letters, without Spark."""

import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import sparkstorm as ss
from sparkstorm.checkpoint.files import LocalFiles
from sparkstorm.cli.main import app
from sparkstorm.dead_letters import DeadLetter, LetterStore, Unwritable
from sparkstorm.dead_letters.requests import RequestBox

HOUR = 3600.0


def letters_command(*args: str | Path, answer: str | None = None) -> Result:
    runner = CliRunner(env={"COLUMNS": "200"})
    return runner.invoke(app, ["dead-letters", *map(str, args)], input=answer)


def assert_refused(result: Result, *words: str) -> None:
    """It ends with code 2 and one line without a trace that has all the words."""
    assert result.exit_code == 2, result.output
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("sparkstorm: ")]
    assert [word for word in words if word not in line] == []
    assert "Traceback" not in result.output


def letter(id_: str, hours: float, **changes: object) -> DeadLetter:
    failure = ss.Failure(
        reason=ss.Reason(str(changes.pop("reason", "error"))),
        component=str(changes.pop("component", "parse")),
        task=3,
        message="ValueError: no [bold]number[/]",
        traceback="Traceback (most recent call last):\n  File parse.py, line 7, in execute\n",
        attempt=17,
    )
    values: dict[str, object] = {
        "topology": "shop",
        "run": "r1",
        "spout": "orders",
        "task": 0,
        "stream": "default",
        "fields": ("text", "raw"),
        "values": (f"order {id_}", b"\x00\xff"),
        "msg_id": ("orders", 3, 12),
        "source": {"topic": "orders", "position": 12},
        "attempts": 17,
        "first_time": time.time() - hours * HOUR - 100,
        "last_time": time.time() - hours * HOUR,
    }
    return DeadLetter(id=id_, failure=failure, **{**values, **changes})  # type: ignore[arg-type]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint with four letters."""
    store = LetterStore(LocalFiles(tmp_path / "sparkstorm"))
    store.write([letter("ab01", 1), letter("ab12", 5, component="sink", reason="timeout")])
    store.write([letter("cd34", 30, topology="other")])
    store.write([letter("ef56", 50, values=("x", Unwritable("shop.Odd", "<Odd>")))])
    return tmp_path


def ids(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    return [json.loads(line)["id"] for line in result.stdout.splitlines()]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ([], ["ef56", "cd34", "ab12", "ab01"]),
        (["--topology", "shop"], ["ef56", "ab12", "ab01"]),
        (["--component", "sink"], ["ab12"]),
        (["--component", "orders"], ["ef56", "cd34", "ab12", "ab01"]),
        (["--reason", "timeout"], ["ab12"]),
        (["--older-than", "4h"], ["ef56", "cd34", "ab12"]),
        (["--newer-than", "2d", "--older-than", "1d"], ["cd34"]),
        (["--reason", "lost"], []),
    ],
)
def test_list_filters(checkpoint: Path, filters: list[str], found: list[str]) -> None:
    """The oldest first, one JSON line each."""
    result = letters_command("list", "--checkpoint", checkpoint, "--json", *filters)
    assert ids(result) == found


def test_list_as_a_table(checkpoint: Path) -> None:
    """With what tells one from another, and text as it is."""
    text = letters_command("list", "--checkpoint", checkpoint).stdout
    assert "4 dead letters" in text
    (line,) = [line for line in text.splitlines() if "ab12" in line]
    assert all(word in line for word in ("5h", "shop", "orders", "17", "timeout", "sink"))
    assert "no [bold]number[/]" in line


def test_show_has_everything(checkpoint: Path) -> None:
    text = letters_command("show", "cd", "--checkpoint", checkpoint).stdout
    for words in (
        "cd34",
        "other (run r1)",
        "('orders', 3, 12)",
        '"topic": "orders"',
        "error in parse (task 3)",
        "ValueError: no [bold]number[/]",
        "File parse.py, line 7, in execute",
        "'order cd34'",
        r"b'\x00\xff'",
    ):
        assert words in text
    line = letters_command("show", "cd", "--checkpoint", checkpoint, "--json").stdout
    assert json.loads(line)["values"][1] == {"$": "bytes", "v": "AP8="}
    assert "cannot be replayed" in letters_command("show", "ef", "--checkpoint", checkpoint).stdout


def test_replay_writes_a_request(checkpoint: Path) -> None:
    """By id, by filter or all; what cannot be replayed is named and left out."""
    box = RequestBox(LetterStore(LocalFiles(checkpoint / "sparkstorm")))
    one = letters_command("replay", "ab0", "cd", "--checkpoint", checkpoint, "--rate", "2.5")
    assert "2 dead letters will be replayed" in one.stdout
    every = letters_command("replay", "--all", "--checkpoint", checkpoint)
    assert "3 dead letters will be replayed" in every.stdout
    assert "ef56 cannot be replayed" in every.stderr
    requests = [box.read(name) for name in box.names()]
    assert {(frozenset(r.letters), r.rate) for r in requests if r} == {
        (frozenset({"ab01", "cd34"}), 2.5),
        (frozenset({"ab01", "ab12", "cd34"}), None),
    }


def test_discard_asks(checkpoint: Path) -> None:
    """Unless told not to; a no changes nothing."""
    store = LetterStore(LocalFiles(checkpoint / "sparkstorm"))
    said_no = letters_command("discard", "--all", "--checkpoint", checkpoint, answer="n\n")
    assert said_no.exit_code == 1
    assert len(list(store.letters())) == 4
    said_yes = letters_command("discard", "ab", "cd", "--checkpoint", checkpoint, answer="y\n")
    assert_refused(said_yes, "'ab' may be one of 2")
    said_yes = letters_command("discard", "ab0", "--checkpoint", checkpoint, answer="y\n")
    assert "Discard 1 dead letter for good?" in said_yes.stdout
    result = letters_command("discard", "--older-than", "1d", "--checkpoint", checkpoint, "--yes")
    assert "2 dead letters discarded" in result.stdout
    assert [one.id for one in store.letters()] == ["ab12"]


def test_letters_of_runs_without_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in the user's folder, one folder per topology, or in the one that is given."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert letters_command("list").stdout == "no dead letters\n"
    folder = tmp_path / "sparkstorm" / "dead-letters"
    for name, id_ in (("shop", "ab01"), ("other", "cd34")):
        LetterStore(LocalFiles(folder), name).write([letter(id_, 1, topology=name)])
    assert sorted(ids(letters_command("list", "--json"))) == ["ab01", "cd34"]
    assert ids(letters_command("list", "--json", "--topology", "other")) == ["cd34"]
    assert ids(letters_command("list", "--json", "--folder", folder, "--topology", "shop")) == [
        "ab01"
    ]
    assert "1 dead letter " in letters_command("replay", "cd", "--rate", "5").stdout
    assert len(RequestBox(LetterStore(LocalFiles(folder), "other")).names()) == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["show", "99"], ["'99'", "sparkstorm dead-letters list"]),
        (["show", "ab"], ["'ab'", "ab12, ab01", "write more"]),
        (["replay", "99"], ["'99'"]),
        (["replay"], ["Give ids, filters, or --all"]),
        (["discard"], ["Give ids, filters, or --all"]),
        (["replay", "--all", "--rate", "0"], ["--rate 0"]),
        (["list", "--older-than", "yesterday"], ["'yesterday'", "2h"]),
        (["list", "--reason", "bad"], ["'bad'", "failed, error, timeout, lost, expired"]),
        (["list", "--folder", "/x"], ["--checkpoint and --folder"]),
    ],
)
def test_bad_input_is_one_sentence(checkpoint: Path, args: list[str], words: list[str]) -> None:
    assert_refused(letters_command(*args, "--checkpoint", checkpoint), *words)


def test_missing_folders_are_one_sentence(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert_refused(letters_command("list", "--checkpoint", missing), "missing", "--checkpoint")
    assert_refused(letters_command("list", "--folder", missing), "missing", "dead_letter_folder")


def test_a_damaged_file_is_one_sentence(checkpoint: Path) -> None:
    folder = checkpoint / "sparkstorm" / "dead-letters"
    (folder / "0-x.jsonl").write_text("nonsense\n")
    assert_refused(letters_command("list", "--checkpoint", checkpoint), "line 1", "0-x.jsonl")


@pytest.mark.parametrize("command", [[], ["list"], ["show"], ["replay"], ["discard"]])
def test_every_help_has_an_example(command: list[str]) -> None:
    assert "Example: sparkstorm dead-letters" in letters_command(*command, "-h").stdout
