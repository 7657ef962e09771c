"""Subscriptions: the topics that a Kafka spout reads, and where it begins; checked once."""

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final

from sparkstorm.errors import ConfigError
from sparkstorm.kafka.cluster import Partition

__all__ = ["OnReset", "OutOfRange", "Start", "Subscription", "Topics", "millis_of"]

Topics: TypeAlias = str | Sequence[str] | re.Pattern[str]
"""A topic's name, several, or a pattern that whole names have to match."""

Start: TypeAlias = (
    Literal["earliest", "latest", "committed"] | datetime.datetime | Mapping[str, Mapping[int, int]]
)
"""Where to begin without stored progress; the mapping holds offsets by topic and partition."""

OutOfRange: TypeAlias = Literal["earliest", "latest", "fail"] | datetime.datetime
"""Where to go on when the log no longer has the next offset."""

OnReset: TypeAlias = Literal["fail", "follow", "ignore"]
"""The reaction to stored offsets that somebody has set since the checkpoint was written."""


_HIDDEN = "__"
_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """The topics of a spout, and where to begin.

    Attributes:
        topics: which.
        start: where to begin with a partition of which no progress is stored.
        out_of_range: where to go on if the log no longer has the next offset.
        on_reset: what counts if the stored offsets are not those that we stored last.
        force_from_start: begin at ``start`` whatever is stored, unless the checkpoint goes on.
    """

    topics: Topics
    start: Start = "earliest"
    out_of_range: OutOfRange = "earliest"
    on_reset: OnReset = "fail"
    force_from_start: bool = False

    def __post_init__(self) -> None:
        self._check_names()
        if not isinstance(self.topics, re.Pattern) and not self.names:
            raise ConfigError("there is no topic to read: name one, several, or give a pattern")
        if isinstance(self.start, Mapping):
            self._check_offsets(self.start)
        else:
            _check("start", self.start, ("earliest", "latest", "committed"))
        _check("out_of_range", self.out_of_range, ("earliest", "latest", "fail"))
        if self.on_reset not in ("fail", "follow", "ignore"):
            raise ConfigError(f"on_reset is {self.on_reset!r}: use 'fail', 'follow' or 'ignore'")
        if self.force_from_start and self.start == "committed":
            raise ConfigError(
                "force_from_start passes over what is committed: choose another start"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The topics that are named; none if there is a pattern."""
        if isinstance(self.topics, re.Pattern):
            return ()
        return (self.topics,) if isinstance(self.topics, str) else tuple(self.topics)

    @property
    def several(self) -> bool:
        """Whether it may be more than one topic."""
        return len(self.names) != 1

    def given(self, partition: Partition) -> int | None:
        """The offset that ``start`` names for a partition, if it does."""
        offsets = self.start if isinstance(self.start, Mapping) else {}
        return offsets.get(partition.topic, {}).get(partition.number)

    def picks(self, name: str) -> bool:
        """Whether a topic of this name belongs to it.

        A pattern takes Kafka's internal topics (``__consumer_offsets``) and others with two
        underscores only if the pattern itself begins so.
        """
        if isinstance(self.topics, re.Pattern):
            hidden = name.startswith(_HIDDEN) and not self.topics.pattern.startswith(_HIDDEN)
            return not hidden and self.topics.fullmatch(name) is not None
        return name in self.names

    def _check_names(self) -> None:
        """Refuse names that no topic has, and names that stand twice."""
        names: tuple[object, ...] = self.names
        for name in names:
            if not isinstance(name, str) or not _LEGAL.fullmatch(name) or name in (".", ".."):
                raise ConfigError(
                    f"{name!r} is no name of a topic: letters, digits, '.', '_' and '-' make one, "
                    f"at most 249; for a pattern give re.compile(…)"
                )
        twice = [name for number, name in enumerate(names) if name in names[:number]]
        if twice:
            raise ConfigError(f"the topic {twice[0]!r} stands twice in topics: name it once")

    def _check_offsets(self, start: Mapping[str, Any]) -> None:
        for topic, offsets in start.items():
            if not self.picks(topic):
                raise ConfigError(
                    f"start has offsets for the topic {topic!r}, which the spout does not read"
                )
            whole = isinstance(offsets, Mapping) and all(
                isinstance(number, int) and number >= 0
                for pair in offsets.items()
                for number in pair
            )
            if not whole:
                raise ConfigError(
                    f"start has {offsets!r} for the topic {topic!r}: give a mapping of partition "
                    f"numbers to offsets, such as {{0: 1500}}"
                )


def millis_of(moment: datetime.datetime) -> int:
    """The moment in milliseconds since 1970, as Kafka counts time."""
    return int(moment.timestamp() * 1000)


def _check(name: str, value: object, words: tuple[str, ...]) -> None:
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise ConfigError(f"{name} is a time without a time zone: {value}. Give it one")
    elif value not in words:
        raise ConfigError(f"{name} is {value!r}: use {', '.join(map(repr, words))} or a datetime")
