"""Selections of letters: by id, topology, component, reason and age."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.errors import ConfigError
from sparkstorm.verdicts import Reason

__all__ = ["Selection", "by_id", "parse_age"]

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A filter; None passes everything.

    Attributes:
        topology: the topology's name.
        component: the component of the failure, or the spout.
        reason: why the last attempt failed.
        older_than: least age in seconds, since the last attempt.
        newer_than: greatest age in seconds.
    """

    topology: str | None = None
    component: str | None = None
    reason: Reason | None = None
    older_than: float | None = None
    newer_than: float | None = None

    def takes(self, letter: DeadLetter, now: float) -> bool:
        """Return whether the filter passes a letter; ``now`` is in seconds since 1970."""
        age = now - letter.last_time
        return (
            self.topology in (None, letter.topology)
            and self.component in (None, letter.spout, letter.failure.component)
            and self.reason in (None, letter.failure.reason)
            and (self.older_than is None or age > self.older_than)
            and (self.newer_than is None or age < self.newer_than)
        )

    @property
    def is_empty(self) -> bool:
        """Whether the filter passes every letter."""
        return self == Selection()


def parse_age(text: str) -> float:
    """Return the seconds of an age as people write it: a number and s, m, h, d or w.

    >>> parse_age("2h"), parse_age("1.5d")
    (7200.0, 129600.0)

    Raises:
        ConfigError: the text is no age.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text.strip())
    if match is None:
        raise ConfigError(f"{text!r} is no age: write a number and s, m, h, d or w, as in 2h or 3d")
    return float(match[1]) * _UNITS[match[2]]


def by_id(letters: Iterable[DeadLetter], ids: Sequence[str]) -> list[DeadLetter]:
    """Return the letters with some ids; ids may be abbreviated.

    Raises:
        ConfigError: an id fits no letter, or several.
    """
    known = list(letters)
    return [_one(known, start.lower()) for start in dict.fromkeys(ids)]


def _one(letters: Sequence[DeadLetter], start: str) -> DeadLetter:
    found = [letter for letter in letters if start and letter.id.startswith(start)]
    if not found:
        raise ConfigError(f"there is no dead letter {start!r}: see sparkstorm dead-letters list")
    if len(found) > 1:
        some = ", ".join(letter.id for letter in found[:3])
        raise ConfigError(f"{start!r} may be one of {len(found)} dead letters ({some}): write more")
    return found[0]
