"""Dead letters as delivery writes them: made from what a spout's task knows of a message."""

from collections.abc import Hashable, Mapping
from typing import Any, final

from sparkstorm.dead_letters.letter import DeadLetter, letter_id
from sparkstorm.dead_letters.office import DeadLetterOffice, Desk
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.verdicts import Failure

__all__ = ["LetterWriter"]


@final
class LetterWriter:
    """Writes the dead letters of one spout task."""

    def __init__(self, plan: Plan, component: str, task: int, office: DeadLetterOffice) -> None:
        spec = plan.spec(component)
        self._plan = plan
        self._component = component
        self._task = task - plan.tasks[component].start
        self._office = office
        self.desk: Desk = office.desk(plan.config.override(dict(spec.settings)))

    def now(self) -> float:
        """The time in seconds since 1970."""
        return self._office.clock.wall()

    def letter(
        self,
        msg_id: Hashable,
        failure: Failure,
        *,
        stream: str,
        attempts: int,
        began: float,
        values: tuple[Any, ...] | None,
        note: str = "",
        direct: int | None = None,
        source: Mapping[str, Any] | None = None,
    ) -> DeadLetter:
        """Return the letter of a message that was given up now; it is not written yet."""
        topology = self._office.topology
        return DeadLetter(
            id=letter_id(
                topology=topology,
                spout=self._component,
                stream=stream,
                msg_id=msg_id,
                values=values,
            ),
            topology=topology,
            run=self._office.run,
            spout=self._component,
            task=self._task,
            stream=stream,
            fields=self._plan.stream(StreamKey(self._component, stream)).names,
            values=values,
            direct=None if direct is None else self._place_of(direct),
            msg_id=msg_id,
            source=source,
            failure=failure,
            attempts=attempts,
            first_time=began,
            last_time=self.now(),
            note=note,
        )

    def _place_of(self, task: int) -> tuple[str, int]:
        component = self._plan.component_of(task)
        return component, task - self._plan.tasks[component].start
