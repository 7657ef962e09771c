"""Children that find out about their parent; a program: python probes.py ROLE.

Each row is ``[number, word]``. Standard library only: a parent may run it by any Python.
"""

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

_NEWLINE = "\n"


def read_lines() -> list[str]:
    """Return the lines of a message as they came; end with the parent."""
    lines: list[str] = []
    while (line := sys.stdin.readline()) != "end\n":
        if not line:
            sys.exit(0)
        lines.append(line)
    return lines


def read() -> Any:
    """Return the next message."""
    return json.loads("".join(read_lines()))


def write(text: str) -> None:
    """Write a frame."""
    sys.stdout.write(f"{text}{_NEWLINE}end{_NEWLINE}")
    sys.stdout.flush()


def send(command: str, **fields: Any) -> None:
    """Write a message."""
    write(json.dumps({"command": command, **fields}))


def emit(values: list[Any], tup: dict[str, Any], **fields: Any) -> None:
    """Emit, anchored to a tuple, without asking for task ids."""
    fields.setdefault("need_task_ids", False)
    send("emit", tuple=values, anchors=[tup["id"]], **fields)


def shake_hands() -> dict[str, Any]:
    """Answer the handshake; return it."""
    hello: dict[str, Any] = read()
    with open(os.path.join(hello["pidDir"], str(os.getpid())), "w"):
        pass
    write(json.dumps({"pid": os.getpid()}))
    return hello


def tuples() -> Iterator[dict[str, Any]]:
    """Yield tuples that carry data; answer heartbeats."""
    while True:
        tup = read()
        if isinstance(tup, list):
            continue
        if tup["stream"] == "__heartbeat":
            send("sync")
        else:
            yield tup


def echo() -> None:
    """Emit the word of each row."""
    shake_hands()
    for tup in tuples():
        emit([tup["tuple"][1]], tup)
        send("ack", id=tup["id"])


def hello() -> None:
    """Emit the names of what the handshake told."""
    told = shake_hands()
    names = sorted(name for name in ("conf", "context", "pidDir") if name in told)
    names += sorted(told.get("context", {}))
    for tup in tuples():
        emit([names], tup)
        send("ack", id=tup["id"])


def frames() -> None:
    """Emit whether each message was one line of JSON."""
    shake_hands()
    while True:
        lines = read_lines()
        tup = json.loads("".join(lines))
        if isinstance(tup, dict) and tup["stream"] == "__heartbeat":
            send("sync")
        elif isinstance(tup, dict):
            emit([len(lines) == 1 and "\r" not in lines[0]], tup)
            send("ack", id=tup["id"])


def ids() -> None:
    """Ask for task ids, and emit whether a list of numbers came for each emit, in order."""
    shake_hands()
    waiting: list[dict[str, Any]] = []
    while True:
        tup = waiting.pop(0) if waiting else read()
        if tup["stream"] == "__heartbeat":
            send("sync")
            continue
        send("emit", tuple=[True], anchors=[tup["id"]])
        answer = read()
        while not isinstance(answer, list):
            waiting.append(answer)
            answer = read()
        emit([all(isinstance(task, int) for task in answer)], tup)
        send("ack", id=tup["id"])


def late() -> None:
    """Ack in reverse order, and only upon the first heartbeat that comes behind a tuple."""
    shake_hands()
    kept: list[dict[str, Any]] = []
    while True:
        tup = read()
        if tup["stream"] != "__heartbeat":
            kept.append(tup)
            continue
        send("sync")
        for one in reversed(kept):
            emit([one["tuple"][1]], one)
            send("ack", id=one["id"])
        kept.clear()


def odd() -> None:
    """Write as some adapters do: JSON over lines, CRLF, fields that stand for absent ones."""
    global _NEWLINE
    shake_hands()
    _NEWLINE = "\r\n"
    for tup in tuples():
        message = {
            "command": "emit",
            "id": "",
            "stream": "",
            "task": 0,
            "anchors": [tup["id"]],
            "tuple": [tup["tuple"][1]],
            "need_task_ids": False,
        }
        write(json.dumps(message, indent=2))
        write(json.dumps({"command": "ack", "id": tup["id"]}, ensure_ascii=False))


def talkative() -> None:
    """Log, report, count, send an unknown command, and flood standard error."""
    shake_hands()
    for tup in tuples():
        send("log", msg="größer ✓")
        send("log", msg="with a level", level=4)
        send("error", msg="an error")
        send("dance")
        sys.stderr.write("x" * 200_000 + "\n")
        sys.stderr.flush()
        emit([tup["tuple"][1]], tup)
        send("ack", id=tup["id"])


def failing() -> None:
    """Fail rows with an odd number."""
    shake_hands()
    for tup in tuples():
        send("fail" if tup["tuple"][0] % 2 else "ack", id=tup["id"])


def dying() -> None:
    """Die of the row with the number 3."""
    shake_hands()
    for tup in tuples():
        if tup["tuple"][0] == 3:
            sys.exit(1)
        emit([tup["tuple"][1]], tup)
        send("ack", id=tup["id"])


if __name__ == "__main__":
    globals()[sys.argv[1]]()
