"""The conformance suites: our parent passes, children pass, and broken ones are found out."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.multilang import ShellBolt
from sparkstorm.testing import FeederSpout, LocalRunner
from sparkstorm.testing.shells import (
    BoltRun,
    check_shell_bolt,
    check_shell_parent,
    check_shell_spout,
)

ROOT = Path(__file__).parents[2]
ROLES = [sys.executable, str(ROOT / "tests" / "behaviour" / "children" / "roles.py")]
RESOURCES = ROOT / "examples" / "multilang" / "resources"
ROWS = [["to be or not"], ["to be"]]


def run_ours(command: Sequence[str], rows: Sequence[Sequence[Any]]) -> BoltRun:
    feed = FeederSpout(["number", "word"])
    builder = ss.TopologyBuilder()
    builder.set_spout("feed", feed)
    builder.set_bolt("shell", ShellBolt(command, outputs=["value"])).shuffle_grouping("feed")
    builder.set_bolt("end", Drop(), 2).shuffle_grouping("shell")
    seen = BoltRun()

    def tap(key: Any, task: int, emitted: list[tuple[Any, ...]]) -> None:
        seen.emitted.extend(map(list, emitted))

    with LocalRunner(builder.create_topology(), taps=["shell"], on_tap=tap) as runner:
        for row in rows:
            feed.feed(row, row[0])
        while runner.statistics().acked + runner.statistics().failed < len(rows):
            runner.step()
    seen.acked.update(feed.acked)
    seen.failed.update(feed.failed)
    return seen


class Drop(ss.BasicBolt):
    """Takes what there is."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Nothing."""


def test_our_parent_passes() -> None:
    check_shell_parent(run_ours)


def test_a_parent_that_loses_a_row_is_found_out() -> None:
    def run_badly(command: Sequence[str], rows: Sequence[Sequence[Any]]) -> BoltRun:
        seen = run_ours(command, rows)
        return BoltRun(seen.emitted[1:], seen.acked - {0}, seen.failed)

    with pytest.raises(AssertionError, match="plain words: emitted") as caught:
        check_shell_parent(run_badly, rows=4)
    assert "each row ends: " in str(caught.value)


def test_a_bolt_that_keeps_the_rules_passes() -> None:
    assert len(check_shell_bolt([*ROLES, "split"], ROWS)) == 6
    streams = {"default": ["value"], "ids": ["tasks"]}
    emitted = check_shell_bolt([*ROLES, "ids"], ROWS, streams=streams)
    assert emitted[1] == ([7, 8],)


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("command", "rows", "fields"),
    [
        ("node split.js", ROWS, ["word"]),
        ("ruby clean.rb", [["Word"], ["n0"]], ["word"]),
        ("perl count.pl", [["word"], ["größer"]], ["word", "count"]),
    ],
    ids=["node", "ruby", "perl"],
)
def test_the_examples_pass(needed: Any, command: str, rows: Any, fields: list[str]) -> None:
    program, script = command.split()
    checked = [needed(program), script]
    assert check_shell_bolt(checked, rows, cwd=RESOURCES, streams={"default": fields})


@pytest.mark.parametrize(
    ("role", "word", "fault"),
    [
        ("silent", "a", "1 of 1 tuples are neither acked nor failed"),
        ("upon", "ack twice", "a second time"),
        ("upon", "print", "printed 'hello from a print'"),
        ("upon", "emit after ack", "which is not open"),
        ("upon", "odd stream", "'nobody's', which is not declared|not declared"),
        ("upon", "garbage", "no message"),
    ],
)
def test_a_bolt_that_breaks_a_rule_is_told_which(role: str, word: str, fault: str) -> None:
    with pytest.raises(AssertionError, match=fault):
        check_shell_bolt([*ROLES, role], [[word]], secs=1.0)


def test_a_spout_that_keeps_the_rules_passes() -> None:
    streams = {"default": ["n", "told"]}
    emitted = check_shell_spout([*ROLES, "numbers", "3"], streams=streams, turns=3)
    assert [n for n, _ in emitted] == [0, 1, 2]


def test_a_spout_that_breaks_a_rule_is_told_which() -> None:
    with pytest.raises(AssertionError, match=r"not answered by sync|which no spout may"):
        check_shell_spout([*ROLES, "dancing"], secs=1.0)
