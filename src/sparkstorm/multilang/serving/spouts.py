"""A spout of ours under another parent: commands in, messages out, a ``sync`` after each."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, final

from sparkstorm.components.spout import Spout
from sparkstorm.multilang.messages import Command, Emit, MsgId, ParentMessage, Sync
from sparkstorm.multilang.serving.bolts import row_of
from sparkstorm.multilang.serving.pipe import Pipe
from sparkstorm.multilang.serving.place import Place
from sparkstorm.streams import DEFAULT_STREAM
from sparkstorm.texts.user_errors import refuse_result
from sparkstorm.verdicts import Failure, Reason

__all__ = ["ServedSpout"]


@final
class ServedSpout:
    """Runs a spout for a parent."""

    def __init__(self, spout: Spout, place: Place, pipe: Pipe) -> None:
        self._spout = spout
        self._place, self._pipe = place, pipe
        self._collector = SpoutEmission(place, pipe)

    def open(self) -> None:
        """Open the spout."""
        context = self._place.context
        self._spout.context, self._spout.collector = context, self._collector
        self._spout.open(context.config, context, self._collector)

    def hear(self, message: ParentMessage) -> None:
        """Carry out a command, and say when that is done."""
        if not isinstance(message, Command):
            return  # nobody waits for task ids
        match message.command:
            case "next":
                result: object = self._spout.next_tuple()
                refuse_result(result, "next_tuple")
            case "ack":
                self._spout.ack(self._collector.take(message.id))
            case "fail":
                why = Failure(reason=Reason.FAILED, message="the parent failed the message")
                self._spout.fail(self._collector.take(message.id), why)
            case "activate":
                self._spout.activate()
            case "deactivate":
                self._spout.deactivate()
        self._pipe.send(Sync())

    def close(self) -> None:
        """Tell the spout that the parent has gone."""
        self._spout.close()


@final
class SpoutEmission:
    """The collector of a served spout.

    The protocol knows texts and numbers as ids. Any other id travels as a number of ours.
    """

    def __init__(self, place: Place, pipe: Pipe) -> None:
        self._place, self._pipe = place, pipe
        self._ids: dict[MsgId, Hashable] = {}
        self._next = 0

    def emit(
        self, values: Sequence[Any], *, msg_id: Hashable = None, stream: str = DEFAULT_STREAM
    ) -> None:
        """Emit a message."""
        self._emit(values, msg_id, stream, None)

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        *,
        msg_id: Hashable = None,
        stream: str = DEFAULT_STREAM,
    ) -> None:
        """Emit to one task, on a stream declared direct."""
        self._emit(values, msg_id, stream, task)

    def give_up(
        self, msg_id: Hashable, failure: Failure, *, source: Mapping[str, Any] | None = None
    ) -> None:
        """Tell the parent: it has no dead letters."""
        self._pipe.report(f"message {msg_id!r} was given up: {failure}")

    def report_error(self, error: BaseException | str) -> None:
        """Show an error to the people who watch the topology."""
        self._pipe.report(error)

    def take(self, told: MsgId) -> Hashable:
        """Return the spout's own id of a message that has ended."""
        return self._ids.pop(told, told)

    def _emit(self, values: Any, msg_id: Hashable, stream: str, task: int | None) -> None:
        row = row_of(values, self._place, stream)
        told = None if msg_id is None else self._told(msg_id)
        self._pipe.send(Emit(values=row, stream=stream, task=task, id=told, need_task_ids=False))

    def _told(self, msg_id: Hashable) -> MsgId:
        if isinstance(msg_id, str) and msg_id:
            told: MsgId = msg_id
        else:
            self._next += 1
            told = f"sparkstorm-{self._next}"
        self._ids[told] = msg_id
        return told
