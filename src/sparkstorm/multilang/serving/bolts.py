"""A bolt of ours under another parent: tuples in, emits and acks out."""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, final

from sparkstorm.components.bolt import AnyBolt, BasicBolt, Bolt
from sparkstorm.components.stateful import StatefulBolt
from sparkstorm.errors import ComponentError, EmitError, TrackingError
from sparkstorm.multilang.messages import Ack, Emit, Fail, ParentMessage, ShellTuple, Sync
from sparkstorm.multilang.serving.pipe import Pipe
from sparkstorm.multilang.serving.place import Place
from sparkstorm.streams import DEFAULT_STREAM, values_of
from sparkstorm.texts.showing import shown
from sparkstorm.texts.user_errors import USER_ERRORS, refuse_result
from sparkstorm.tuples import Tuple

__all__ = ["ServedBolt"]


@final
class ServedBolt:
    """Runs a bolt for a parent. A *batch* is what the parent has written so far.

    Raises:
        ComponentError: the bolt needs what a foreign parent does not have.
    """

    def __init__(self, bolt: AnyBolt, place: Place, pipe: Pipe) -> None:
        if isinstance(bolt, StatefulBolt) or bolt.stateful or bolt.keeps_process:
            raise ComponentError(
                f"the bolt {type(bolt).__name__} keeps state or processes with Spark's batches, "
                f"which another parent does not have. Serve a Bolt or BasicBolt without state"
            )
        self._bolt: Any = bolt
        self._place, self._pipe = place, pipe
        self._emission = Emission(place, pipe)
        self._execute: Callable[..., Any] = _awaited(bolt)
        self._bolt.context = place.context

    def open(self) -> None:
        """Prepare the bolt."""
        context = self._place.context
        if isinstance(self._bolt, Bolt):
            self._bolt.collector = self._emission
            self._bolt.prepare(context.config, context, self._emission)
        else:
            self._bolt.prepare(context.config, context)

    def hear(self, message: ParentMessage) -> None:
        """Take a message of the parent."""
        if not isinstance(message, ShellTuple):
            return  # bolts get no commands; nobody waits for task ids
        if message.is_heartbeat:
            self._pipe.send(Sync())
        elif isinstance(self._bolt, BasicBolt):
            self._run_basic(self._place.tuple_of(message))
        else:
            self._run(self._place.tuple_of(message))
        if isinstance(self._bolt, Bolt) and self._pipe.is_quiet:
            self._finish_batch()

    def close(self) -> None:
        """Tell the bolt that the parent has gone."""
        self._bolt.cleanup()

    def _run_basic(self, tup: Tuple) -> None:
        emission = self._emission
        emission.begin(tup)
        try:
            refuse_result(self._execute(tup, emission))
            emission.flush()
        except USER_ERRORS as error:  # its emits were not sent
            self._failed(tup, error)
        else:
            self._pipe.send(Ack(tup.id))

    def _run(self, tup: Tuple) -> None:
        self._emission.open.add(tup.id)
        try:
            refuse_result(self._execute(tup))
        except USER_ERRORS as error:
            self._failed(tup, error)

    def _finish_batch(self) -> None:
        try:
            refuse_result(self._bolt.finish_batch(), "finish_batch")
        except USER_ERRORS as error:
            self._pipe.report(error)
            for tuple_id in sorted(self._emission.open):
                self._pipe.send(Fail(tuple_id))
            self._emission.open.clear()

    def _failed(self, tup: Tuple, error: BaseException) -> None:
        self._pipe.report(error)
        with suppress(KeyError):  # it was acked before the error
            if isinstance(self._bolt, Bolt):
                self._emission.open.remove(tup.id)
            self._pipe.send(Fail(tup.id))


@final
class Emission:
    """The collector of a served bolt, of either kind.

    Attributes:
        open: the ids of the tuples that are neither acked nor failed.
    """

    def __init__(self, place: Place, pipe: Pipe) -> None:
        self.open: set[str] = set()
        self._place, self._pipe = place, pipe
        self._input: Tuple | None = None
        self._kept: list[Emit] = []
        self._last: dict[str, list[int]] = {}

    def begin(self, tup: Tuple) -> None:
        """Begin the call of a basic bolt, which anchors all emits to its input."""
        self._input = tup
        self._kept.clear()

    def flush(self) -> None:
        """Send the emits of a call that went well."""
        for emit in self._kept:
            self._pipe.send(emit)
        self._kept.clear()
        self._input = None

    def emit(
        self, values: Sequence[Any], *, anchors: Any = None, stream: str = DEFAULT_STREAM
    ) -> None:
        """Emit a tuple."""
        self._emit(values, anchors, stream, None)

    def emit_direct(
        self, task: int, values: Sequence[Any], *, anchors: Any = None, stream: str = DEFAULT_STREAM
    ) -> None:
        """Emit to a task, on a stream declared direct."""
        self._emit(values, anchors, stream, task)

    def ack(self, tup: Tuple) -> None:
        """Ack a tuple."""
        self._end(tup)
        self._pipe.send(Ack(tup.id))

    def fail(self, tup: Tuple, reason: object = None) -> None:
        """Fail a tuple; the reason goes to the parent's errors."""
        self._end(tup)
        if reason is not None:
            self._pipe.report(reason if isinstance(reason, BaseException) else str(reason))
        self._pipe.send(Fail(tup.id))

    def receivers(self, stream: str = DEFAULT_STREAM) -> list[int]:
        """Refuse: the parent would have to be asked at each emit, which costs a turn of the pipe.

        Raises:
            ComponentError: always.
        """
        raise ComponentError(
            "receivers is not there under another parent: emit to tasks of your own choice with "
            "emit_direct"
        )

    def reset_timeout(self, tup: Tuple) -> None:
        """Do nothing: the protocol has no word for it."""

    def report_error(self, error: BaseException | str) -> None:
        """Show an error to the people who watch the topology; no tuple fails."""
        self._pipe.report(error)

    def _emit(self, values: Any, anchors: Any, stream: str, task: int | None) -> None:
        emit = Emit(
            values=row_of(values, self._place, stream),
            stream=stream,
            task=task,
            anchors=self._ids(anchors),
            need_task_ids=False,
        )
        if self._input is None:
            self._pipe.send(emit)
        else:
            self._kept.append(emit)

    def _ids(self, anchors: Any) -> tuple[str, ...]:
        if self._input is not None:
            return (self._input.id,)
        if anchors is None:
            return ()
        each = [anchors] if isinstance(anchors, Tuple) else list(anchors)
        return tuple(dict.fromkeys(tup.id for tup in each))

    def _end(self, tup: Tuple) -> None:
        if tup.id not in self.open:
            raise TrackingError(f"{shown(tup)} was acked or failed before")
        self.open.remove(tup.id)


def row_of(values: Any, place: Place, stream: str) -> list[Any]:
    """Return the values of an emit in the order of the stream's fields.

    Raises:
        EmitError: they do not fit the stream.
    """
    fields = place.streams.get(stream)
    if fields is None:
        known = ", ".join(sorted(place.streams)) or "none"
        raise EmitError(f"the parent's topology declares no stream {stream!r}, but {known}")
    row = values_of(values, fields, stream)
    if len(row) != len(fields):
        raise EmitError(
            f"stream {stream!r} has the fields {', '.join(fields) or 'none'} ({len(fields)}), but "
            f"{len(row)} values were emitted: {shown(values)}"
        )
    return list(row)


def _awaited(bolt: Any) -> Callable[..., Any]:
    """Return ``execute``, run to its end also if it is a coroutine function."""
    if not inspect.iscoroutinefunction(bolt.execute):
        execute: Callable[..., Any] = bolt.execute
        return execute
    runner = asyncio.Runner()
    return lambda *args: runner.run(bolt.execute(*args))
