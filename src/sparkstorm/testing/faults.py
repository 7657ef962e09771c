"""The faults of a simulation: how likely each is, and the seed that decides when each strikes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from random import Random
from typing import Any, TypeVar, final

__all__ = ["Chance", "Faults"]

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How likely each kind of fault is, at each moment where it could strike.

    Attributes:
        crash: the driver dies, and another driver starts on the same checkpoint. Moments: before
            the plan, before and after each file that the driver writes, after the job, before and
            after the commit.
        lost_job: the job of a batch fails after one of its stages. It runs again, without some
            messages if need be.
        reused_output: a job that runs again takes the output of a task of the failed job.
        repeated_task: a task runs twice, perhaps in another process; the second output counts.
        lost_packet: a packet disappears between two tasks.
        doubled_packet: a packet arrives twice.
        slow_spout: a spout has nothing to emit yet.
        late_outcome: time passes between a job's end and the driver's notice of it.
        processes: how many worker processes share the tasks.

    Raises:
        ValueError: a likelihood is not between 0 and 1, or there is no process.
    """

    crash: float = 0.01
    lost_job: float = 0.03
    reused_output: float = 0.5
    repeated_task: float = 0.05
    lost_packet: float = 0.005
    doubled_packet: float = 0.005
    slow_spout: float = 0.1
    late_outcome: float = 0.05
    processes: int = 3

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "processes" and value < 1:
                raise ValueError(f"processes must be at least 1, not {value}")
            if each.name != "processes" and not 0 <= value <= 1:
                raise ValueError(f"{each.name} is a probability from 0 to 1, not {value}")

    @classmethod
    def none(cls) -> "Faults":
        """Return faults that never strike.

        >>> Faults.none().crash
        0.0
        """
        names = [each.name for each in fields(cls) if each.name != "processes"]
        return cls(**dict.fromkeys(names, 0.0), processes=1)

    @classmethod
    def only(cls, **chances: Any) -> "Faults":
        """Return faults of which only the named ones strike.

        >>> Faults.only(crash=0.5)
        Faults(crash=0.5, lost_job=0.0, ...)
        """
        return replace(cls.none(), **chances)


@final
class Chance:
    """Draws everything from one seed, and keeps a trace.

    Attributes:
        trace: a line for each event; the same for the same seed.
        counts: how often each fault struck.
        calm: while set, no fault strikes.
    """

    def __init__(self, seed: int, faults: Faults) -> None:
        self.faults = faults
        self.trace: list[str] = []
        self.counts: Counter[str] = Counter()
        self.calm = False
        self._random = Random(seed)  # noqa: S311 - to be repeated, not to be secret

    def strikes(self, fault: str, where: str) -> bool:
        """Draw whether a fault strikes now; ``where`` goes into the trace."""
        odds: float = getattr(self.faults, fault)
        if self.calm or self._random.random() >= odds:
            return False
        self.counts[fault] += 1
        self.note(f"{fault}: {where}")
        return True

    def note(self, line: str) -> None:
        """Add a line to the trace."""
        self.trace.append(line)

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of the choices."""
        return self._random.choice(choices)

    def shuffle(self, items: list[T]) -> None:
        """Shuffle a list in place."""
        self._random.shuffle(items)
