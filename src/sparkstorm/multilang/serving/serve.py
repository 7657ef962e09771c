"""Serve one component on the standard streams, until the parent closes the pipe."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sparkstorm.components.bolt import AnyBolt
from sparkstorm.components.spout import Spout
from sparkstorm.errors import ComponentError, ProtocolError
from sparkstorm.multilang.framing import Serializer
from sparkstorm.multilang.messages import Handshake, Pid
from sparkstorm.multilang.serving.bolts import ServedBolt
from sparkstorm.multilang.serving.pipe import Pipe, own_pipe
from sparkstorm.multilang.serving.place import Place
from sparkstorm.multilang.serving.spouts import ServedSpout
from sparkstorm.streams import declare
from sparkstorm.texts.user_errors import USER_ERRORS

__all__ = ["serve"]


def serve(make: Callable[[], Any], serializer: Serializer | None = None) -> int:
    """Serve a spout or bolt to the parent that started this process; return the exit code.

    The parent is Apache Storm, a :class:`ShellBolt` or :class:`ShellSpout`, or anyone who speaks
    the multi-language protocol. Prints and log records go to the parent's log.

    Args:
        make: returns the spout or bolt; what it prints goes to the log, too.
        serializer: how messages are written; Storm's JSON by default.

    Raises:
        ComponentError: the component needs what a foreign parent does not have.
        ProtocolError: the parent does not speak the protocol.
    """
    pipe = own_pipe(serializer)
    component = make()
    _check(component)
    place = _shake_hands(pipe)
    served = _served(component, place, pipe)
    try:
        served.open()
        for message in pipe.messages():
            served.hear(message)
    except USER_ERRORS as error:  # as Storm's own adapters do: tell, end, be started again
        pipe.report(error)
        sys.stderr.write(f"sparkstorm: {error}\n")
        return 1
    served.close()
    return 0


def _check(component: Any) -> None:
    """Refuse what cannot be served, before the handshake.

    Raises:
        ComponentError: names the reason.
    """
    if not isinstance(component, Spout | AnyBolt):
        raise ComponentError(
            f"a {type(component).__name__} cannot be served: give a Spout, a Bolt or a BasicBolt. "
            f"Partitioned spouts read on Spark's executors, which another parent does not have"
        )


def _shake_hands(pipe: Pipe) -> Place:
    handshake = pipe.receive()
    if not isinstance(handshake, Handshake):
        raise ProtocolError(
            "no handshake came on the standard input: this command is started by a parent (Storm's "
            "ShellBolt or ShellSpout, or ours), not by hand"
        )
    place = Place(handshake)
    Path(handshake.pid_dir, str(os.getpid())).touch()
    pipe.send(Pid(os.getpid()))
    pipe.open_log()
    return place


def _served(component: Any, place: Place, pipe: Pipe) -> ServedBolt | ServedSpout:
    for name, stream in declare(component.outputs).items():
        told = place.streams.get(name)
        if told is not None and told != stream.names:
            pipe.report(
                f"stream {name!r} has the fields {', '.join(told)} in the parent's topology, and "
                f"{', '.join(stream.names)} in {type(component).__name__}"
            )
    if isinstance(component, Spout):
        return ServedSpout(component, place, pipe)
    return ServedBolt(component, place, pipe)
