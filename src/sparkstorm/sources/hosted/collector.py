"""The collector of a hosted spout, and the checks of what the spout hands over."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol, final

from sparkstorm.errors import EmitError
from sparkstorm.planning.plan import Plan
from sparkstorm.streams import DEFAULT_STREAM, values_of
from sparkstorm.tasks.collectors.outbox import task_number
from sparkstorm.texts.showing import shown
from sparkstorm.texts.user_errors import reason_of
from sparkstorm.verdicts import Failure, Reason

__all__ = ["HostedCollector", "emitted_row", "failure_of", "known_task"]


class _Task(Protocol):
    """The task that the collector belongs to."""

    def emitted(
        self, values: Sequence[Any], msg_id: Hashable, stream: str, direct: int | None
    ) -> None: ...

    def give_up(
        self, msg_id: Hashable, failure: Failure, source: Mapping[str, Any] | None
    ) -> None: ...

    def log(self, level: str, text: str) -> None: ...


@final
class HostedCollector:
    """A hosted spout emits into it, on the spout's own thread."""

    def __init__(self, task: _Task) -> None:
        self._task = task

    def emit(
        self,
        values: Sequence[Any],
        *,
        msg_id: Hashable = None,
        stream: str = DEFAULT_STREAM,
    ) -> None:
        """Emit a message."""
        self._task.emitted(values, msg_id, stream, None)

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        *,
        msg_id: Hashable = None,
        stream: str = DEFAULT_STREAM,
    ) -> None:
        """Emit to one task, on a stream declared direct."""
        self._task.emitted(values, msg_id, stream, task)

    def give_up(
        self, msg_id: Hashable, failure: Failure, *, source: Mapping[str, Any] | None = None
    ) -> None:
        """Say that a message will not be tried again."""
        self._task.give_up(msg_id, failure, source)

    def report_error(self, error: BaseException | str) -> None:
        """Show an error to whoever watches the topology."""
        self._task.log("error", reason_of(error))


def emitted_row(
    plan: Plan, component: str, values: Sequence[Any], stream: str, *, direct: bool
) -> tuple[Any, ...]:
    """Return the values of a message.

    Raises:
        EmitError: the stream is not declared, has other fields, or is emitted to in another way.
    """
    declared = plan.spec(component).streams.get(stream)
    if declared is None:
        raise EmitError(f"spout {component!r} declares no stream {shown(stream)}")
    values = values_of(values, declared.names, f"{component}/{stream}")
    if len(values) != len(declared.fields) or direct != declared.direct:
        raise EmitError(
            f"spout {component!r} emitted {shown(list(values))} to stream {stream!r}, which has "
            f"the fields {', '.join(declared.names)}{' and is direct' if declared.direct else ''}"
        )
    return tuple(values)


def known_task(plan: Plan, component: str, task: Any) -> int:
    """Return the number of a task; one that does not read the stream fails the message later.

    Raises:
        EmitError: there is no such task.
    """
    number = task_number(task)
    if not any(number in tasks for tasks in plan.tasks.values()):
        raise EmitError(f"spout {component!r} emitted to task {number}, which there is not")
    return number


def failure_of(failure: object, component: str, task: int) -> Failure:
    """Return why a spout gives a message up: also from an exception or a text."""
    if type(failure) is Failure:
        return failure
    return Failure(reason=Reason.FAILED, component=component, task=task, message=reason_of(failure))
