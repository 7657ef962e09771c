"""A private part of Spark that sparkstorm relies on, with the reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import final

__all__ = ["Need", "Vital"]


@final
class Vital(Enum):
    """The topologies that a missing part makes sparkstorm refuse: their results could be wrong."""

    NONE = "none"
    ALL = "all"
    STATE = "those with state, or with processing.guarantee exactly-once"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A private part of Spark.

    Attributes:
        owner: the class or module. A name that starts with ``org.apache.`` is Java's, any other
            Python's.
        name: the method or attribute; empty if only the class is needed.
        takes: the types of a Java method's arguments.
        why: the use that sparkstorm makes of the part.
        since: the first version of Spark known to have the part.
        without: the loss if the part is missing.
        vital: the topologies that are refused without the part.
    """

    owner: str
    name: str = ""
    takes: Sequence[str] = ()
    why: str
    since: str
    without: str
    vital: Vital = Vital.NONE

    @property
    def is_java(self) -> bool:
        """Whether the owner is a Java class."""
        return self.owner.startswith("org.apache.")

    def __str__(self) -> str:
        short = self.owner.rpartition(".")[2]
        return f"{short}.{self.name}" if self.name else short
