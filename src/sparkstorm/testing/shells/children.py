"""The suite for children: start one, talk to it as Storm does, and list what it does wrong."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sparkstorm.multilang.messages import (
    HEARTBEAT,
    Ack,
    ChildMessage,
    Command,
    Emit,
    Error,
    Fail,
    Log,
    ShellTuple,
    Sync,
    TaskIds,
)
from sparkstorm.testing.shells.conversation import Conversation

__all__ = ["check_shell_bolt", "check_shell_spout"]

_SECS = 10.0


def check_shell_bolt(
    command: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    cwd: str | Path | None = None,
    streams: Mapping[str, Sequence[str]] | None = None,
    secs: float = _SECS,
) -> list[tuple[Any, ...]]:
    """Check that a program is a bolt of the multi-language protocol; return what it emitted.

    It must answer the handshake, finish each tuple once, answer heartbeats, wait properly for task
    ids, keep its standard output clean, and end with its input.

    Args:
        command: the program and its arguments.
        rows: values of tuples that it understands.
        cwd: its working directory.
        streams: the fields of its streams; one stream ``default`` with a field ``value`` if None.
        secs: how long an answer may take.

    Raises:
        AssertionError: naming every fault.
    """
    declared = _declared(streams)
    emitted: list[tuple[Any, ...]] = []
    with Conversation(command, cwd, secs) as talk:
        talk.shake_hands("bolt", declared)
        open_ones = {f"-{7_000_000_000_000 + at}" for at in range(len(rows))}
        for tuple_id, row in zip(sorted(open_ones), rows, strict=True):
            talk.say(ShellTuple(id=tuple_id, comp="source", stream="default", task=1, values=row))
        talk.say(ShellTuple(id="0", comp=None, stream=HEARTBEAT, task=-1, values=()))
        finished: set[str] = set()
        synced = False
        while open_ones or not synced:
            message = talk.hear()
            if message is None:
                missing = f"{len(open_ones)} of {len(rows)} tuples are neither acked nor failed"
                talk.faults += [missing] if open_ones else []
                talk.faults += [] if synced else ["a heartbeat was not answered by sync"]
                break
            synced = synced or isinstance(message, Sync)
            _note(message, talk, declared, open_ones, finished, emitted)
        talk.end()
        _tell(command, talk.faults)
    return emitted


def check_shell_spout(
    command: Sequence[str],
    *,
    cwd: str | Path | None = None,
    streams: Mapping[str, Sequence[str]] | None = None,
    lifecycle: bool = True,
    turns: int = 20,
    secs: float = _SECS,
) -> list[tuple[Any, ...]]:
    """Check that a program is a spout of the multi-language protocol; return what it emitted.

    It must answer the handshake, and each command by ``sync``. Every second message is acked, every
    other one failed.

    Args:
        command: the program and its arguments.
        cwd: its working directory.
        streams: the fields of its streams; one stream ``default`` with a field ``value`` if None.
        lifecycle: whether to send ``activate`` and ``deactivate``.
        turns: how often it is asked for the next message.
        secs: how long an answer may take.

    Raises:
        AssertionError: naming every fault.
    """
    declared = _declared(streams)
    emitted: list[tuple[Any, ...]] = []
    with Conversation(command, cwd, secs) as talk:
        talk.shake_hands("spout", declared)
        commands = [Command("activate")] if lifecycle else []
        commands += [Command("next")] * turns
        ids: list[Any] = []
        for one in commands:
            ids += _turn(talk, one, declared, emitted)
        for at, msg_id in enumerate(ids):
            _turn(talk, Command("fail" if at % 2 else "ack", msg_id), declared, emitted)
        if lifecycle:
            _turn(talk, Command("deactivate"), declared, emitted)
        talk.end()
        _tell(command, talk.faults)
    return emitted


def _turn(
    talk: Conversation,
    command: Command,
    streams: Mapping[str, Sequence[str]],
    emitted: list[tuple[Any, ...]],
) -> list[Any]:
    """Send a command; return the ids of what is emitted until ``sync``.

    A child that has left a command unanswered is sent no more of them.
    """
    if talk.is_silent:
        return []
    talk.say(command)
    ids = []
    while not isinstance(message := talk.hear(), Sync):
        if isinstance(message, Emit):
            _note_emit(message, talk, streams, emitted)
            ids += [] if message.id is None else [message.id]
        elif message is None:
            talk.faults.append(f"the command {command.command!r} was not answered by sync")
            talk.is_silent = True
            break
        elif not isinstance(message, Log | Error):
            talk.faults.append(f"it sent {message}, which no spout may")
    return ids


def _note(
    message: ChildMessage,
    talk: Conversation,
    streams: Mapping[str, Sequence[str]],
    open_ones: set[str],
    finished: set[str],
    emitted: list[tuple[Any, ...]],
) -> None:
    match message:
        case Ack(tuple_id) | Fail(tuple_id):
            verb = type(message).__name__.lower()
            if tuple_id in finished:
                talk.faults.append(f"it sent {verb} for {tuple_id!r} a second time")
            elif tuple_id not in open_ones:
                talk.faults.append(f"it sent {verb} for {tuple_id!r}, an id that it never got")
            open_ones.discard(tuple_id)
            finished.add(tuple_id)
        case Emit():
            strangers = [one for one in message.anchors if one not in open_ones]
            if strangers:
                talk.faults.append(f"it anchored an emit to {strangers[0]!r}, which is not open")
            _note_emit(message, talk, streams, emitted)
        case _:
            pass


def _note_emit(
    message: Emit,
    talk: Conversation,
    streams: Mapping[str, Sequence[str]],
    emitted: list[tuple[Any, ...]],
) -> None:
    fields = streams.get(message.stream)
    if fields is None:
        talk.faults.append(f"it emitted to the stream {message.stream!r}, which is not declared")
    elif len(fields) != len(message.values):
        values = json.dumps(message.values)[:100]
        talk.faults.append(f"it emitted {values} to a stream with the fields {', '.join(fields)}")
    emitted.append(tuple(message.values))
    if message.task is None and message.need_task_ids:
        talk.say(TaskIds(talk.TASKS))


def _declared(streams: Mapping[str, Sequence[str]] | None) -> dict[str, list[str]]:
    given = {"default": ["value"]} if streams is None else streams
    return {name: list(fields) for name, fields in given.items()}


def _tell(command: Sequence[str], faults: Sequence[str]) -> None:
    if faults:
        listed = "\n".join(f"- {fault}" for fault in dict.fromkeys(faults))
        raise AssertionError(f"{' '.join(command)} breaks the protocol:\n{listed}")
