"""The loops around ``execute``: the innermost of everything, one pass for each tuple.

Compiled where a C compiler is found, with what they call for each tuple; ``docs/internals.md``
tells how. The two loops say much the same: where they are not compiled, a function for that would
be one more call for each tuple.
"""

from collections.abc import Callable
from sys import getrefcount
from typing import Any

from sparkstorm.components.bolt import BasicBolt, Bolt
from sparkstorm.packets.inbox import Inbox, PacketOrigin
from sparkstorm.planning.plan import Plan
from sparkstorm.state.undo import Call
from sparkstorm.tasks.collectors.emission import BasicEmission, BoltEmission
from sparkstorm.texts.user_errors import is_of_call, refuse_result
from sparkstorm.tuples import Fields, Tuple

__all__ = ["run_basic", "run_bolt"]

Failed = Callable[[int, BaseException], None]
"""Told of the position of a tuple whose ``execute`` raised, and of what it raised."""


def _count_unheld() -> int:
    tup = Tuple((), PacketOrigin(Inbox.empty(), Fields(()), "", "", 0), -1)
    return getrefcount(tup)


_UNHELD = _count_unheld()
"""The reference count (measured, since Pythons differ) of a tuple that only the loop holds: the
bolt kept none, so the same object serves for the next tuple, as ``zip`` does with its rows. Saves
a tenth of a cheap bolt's time."""


def run_basic(
    bolt: BasicBolt, emission: BasicEmission, inbox: Inbox, plan: Plan, failed: Failed
) -> None:
    """Call ``execute`` of a basic bolt with each tuple; what did not fail is acked at the end."""
    execute, rows, ends, unheld = bolt.execute, emission.rows, emission.ends, _UNHELD
    result: Any
    for origin, index, delivered in inbox.deliveries(plan):
        tup, unread = Tuple((), origin, -1), inbox.unread
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
            ends.append(len(rows))  # what end_input does, without another call
            index += 1
    inbox.ack_rest()


def run_bolt(
    bolt: Bolt, emission: BoltEmission, inbox: Inbox, plan: Plan, call: Call, failed: Failed
) -> None:
    """Call ``execute`` of a bolt with each tuple; ``call`` notes what it changes in the state."""
    execute, others, unheld = bolt.execute, inbox.others, _UNHELD
    result: Any
    for origin, index, delivered in inbox.deliveries(plan):
        tup, unread = Tuple((), origin, -1), inbox.unread
        for values in delivered:
            if getrefcount(tup) == unheld:
                tup.values = values
                tup._index = index  # noqa: SLF001
            else:
                tup = Tuple(values, origin, index)
            emission.input = tup
            call.space = None
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
    emission.input = call.space = None
