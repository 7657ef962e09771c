"""The suite for parents: one runs the children of :mod:`probes`, and we look at the results."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, final

from sparkstorm.testing.shells import probes

__all__ = ["BoltRun", "RunBolt", "check_shell_parent"]

_CONTEXT = [
    "componentid",
    "source->stream->fields",
    "source->stream->grouping",
    "stream->outputfields",
    "stream->target->grouping",
    "streams",
    "task->component",
    "taskid",
]


@final
@dataclass(frozen=True, slots=True)
class BoltRun:
    """A bolt's run as its parent saw it.

    Attributes:
        emitted: the values of all tuples that it emitted to its stream ``default``.
        acked: the numbers of the rows that were acked.
        failed: the numbers of the rows that failed, at least once.
    """

    emitted: list[list[Any]] = field(default_factory=list)
    acked: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)


RunBolt: TypeAlias = Callable[[Sequence[str], Sequence[Sequence[Any]]], BoltRun]
"""Runs a command as a bolt with one output field ``value`` on rows ``[number, word]`` (fields
``number`` and ``word``), one message each, until all of them have ended; tries none again."""


def check_shell_parent(run: RunBolt, *, rows: int = 50) -> None:
    """Check that a parent speaks the multi-language protocol as Storm does.

    Args:
        run: runs a bolt in the parent.
        rows: how many rows to send.

    Raises:
        AssertionError: naming every fault.
    """
    every = [[number, f"wörd {number}"] for number in range(rows)]
    words = [str(word) for _, word in every]
    numbers = set(range(rows))
    faults: list[str] = []

    def look(role: str, sent: list[list[Any]] | None = None) -> BoltRun:
        return run([sys.executable, str(Path(probes.__file__)), role], sent or every)

    def expect(what: str, found: object, wanted: object) -> None:
        if found != wanted:
            faults.append(f"{what}: {str(found)[:300]} instead of {str(wanted)[:300]}")

    def expect_words(what: str, seen: BoltRun) -> None:
        expect(f"{what}: emitted", sorted(str(v) for (v,) in seen.emitted), sorted(words))
        expect(f"{what}: acked", seen.acked, numbers)

    expect_words("plain words", look("echo"))
    told = look("hello", every[:1])
    expect("the handshake", told.emitted, [[["conf", "context", "pidDir", *_CONTEXT]]])
    expect("each message on one line", look("frames").emitted, [[True]] * rows)
    expect("task ids in the order of the emits", look("ids").emitted, [[True]] * 2 * rows)
    expect_words("acks upon a heartbeat, in reverse order", look("late"))
    expect_words("JSON over lines, CRLF, empty fields", look("odd"))
    expect_words("logs, errors, unknown commands, much standard error", look("talkative"))
    long = "x" * 3_000_000
    expect("a long message", look("echo", [[0, long]]).emitted == [[long]], True)
    seen = look("failing")
    expect("fail", seen.failed, {number for number in numbers if number % 2})
    expect("ack beside fail", seen.acked, {number for number in numbers if not number % 2})
    seen = look("dying")
    expect("the row that kills the child fails", 3 in seen.failed, True)
    expect("each row ends once", seen.acked & seen.failed, set())
    expect("each row ends", seen.acked | seen.failed, numbers)
    if faults:
        raise AssertionError("the parent breaks the protocol:\n" + "\n".join(faults))
