"""The loops around ``execute``: the innermost loops of a task, a pass per tuple.

Compiled where there is a C compiler, together with their callees; ``docs/internals.md`` tells how.
The two loops repeat each other: a shared function would cost a call per tuple where nothing is
compiled.
"""

from collections.abc import Callable
from sys import getrefcount
from typing import Any

from sparkstorm.components.bolt import BasicBolt, Bolt
from sparkstorm.packets.inbox import Inbox, PacketOrigin
from sparkstorm.planning.plan import Plan
from sparkstorm.state.spaces.undo import Call
from sparkstorm.tasks.collectors.emission import BasicEmission, BoltEmission
from sparkstorm.texts.user_errors import is_of_call, refuse_result
from sparkstorm.tuples import Fields, Tuple

__all__ = ["run_basic", "run_bolt"]

Failed = Callable[[int, BaseException], None]
"""Called with the position of a tuple whose ``execute`` raised, and with the error."""


def _count_unheld() -> int:
    tup = Tuple((), PacketOrigin(Inbox.empty(), Fields(()), "", "", 0), -1)
    return getrefcount(tup)


_UNHELD = _count_unheld()
"""The reference count of a tuple that only the loop holds; measured, since Pythons differ.

If the bolt kept no reference, the same object serves for the next tuple, as ``zip`` does with its
rows. This saves a tenth of a cheap bolt's time.
"""


def run_basic(
    bolt: BasicBolt, emission: BasicEmission, inbox: Inbox, plan: Plan, failed: Failed
) -> None:
    """Call ``execute`` of a basic bolt with each tuple, then ack the tuples that did not fail."""
    execute, rows, ends, unheld = bolt.execute, emission.rows, emission.ends, _UNHELD
    watch = emission.watch
    result: Any
    for origin, index, delivered in inbox.deliveries(plan):
        tup, unread = Tuple((), origin, -1), inbox.unread
        left = watch.read(index)
        for values in delivered:
            if getrefcount(tup) == unheld:
                tup.values = values
                tup._index = index  # noqa: SLF001
            else:
                tup = Tuple(values, origin, index)
            emission.current = index
            try:
                if not unread or index not in unread:
                    result = execute(tup, emission)
                    if result is not None:
                        refuse_result(result)
            except BaseException as error:
                if not is_of_call(error):
                    raise
                failed(index, error)
            ends.append(len(rows))  # as end_input does, without another call
            index += 1
            left -= 1
            if not left:
                left = watch.read(index)
        watch.read(index)
    inbox.ack_rest()


def run_bolt(
    bolt: Bolt, emission: BoltEmission, inbox: Inbox, plan: Plan, call: Call, failed: Failed
) -> None:
    """Call ``execute`` of a bolt with each tuple; ``call`` notes the call's state changes."""
    execute, others, unheld = bolt.execute, inbox.others, _UNHELD
    watch = emission.watch
    result: Any
    for origin, index, delivered in inbox.deliveries(plan):
        tup, unread = Tuple((), origin, -1), inbox.unread
        left = watch.read(index)
        for values in delivered:
            if getrefcount(tup) == unheld:
                tup.values = values
                tup._index = index  # noqa: SLF001
            else:
                tup = Tuple(values, origin, index)
            emission.input = tup
            call.changes = 0
            try:
                if not unread or index not in unread:
                    result = execute(tup)
                    if result is not None:
                        refuse_result(result)
            except BaseException as error:
                if not is_of_call(error):
                    raise
                failed(index, error)
            if others:
                others.clear()
            index += 1
            left -= 1
            if not left:
                left = watch.read(index)
        watch.read(index)
    emission.input = None
    call.changes = 0
