"""Why a partition's committed offset stands where it stands, in plain words."""

from dataclasses import dataclass
from typing import final

from sparkstorm.control.views import PartitionView
from sparkstorm.texts.wording import counted

__all__ = ["Strip", "Verdict", "strip_of", "verdict_of"]


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """The state of a partition.

    Attributes:
        word: the state in a word.
        tone: ``good``, ``busy``, ``bad`` or ``idle``.
        why: a sentence or more.
    """

    word: str
    tone: str
    why: str


@final
@dataclass(frozen=True, slots=True)
class Strip:
    """The messages between the committed offset and the end, as shares of 100."""

    beyond: float
    flying: float
    retry: float
    unread: float


def verdict_of(one: PartitionView, *, resting: bool = False) -> Verdict:
    """Return why the offset of a partition moves or not; ``resting`` if all spouts rest."""
    if _is_stuck(one):
        return Verdict("stuck", "bad", _why_stuck(one))
    if one.halted:
        return Verdict(
            "halted",
            "idle",
            "Somebody has halted this partition: no new messages are read. Resume it to go on.",
        )
    if one.paused:
        return Verdict(
            "paused",
            "bad",
            f"Too much is read and not committed, so nothing new is read until offset "
            f"{one.committed} is done.",
        )
    if one.in_flight or one.in_retry:
        return Verdict(
            "moving",
            "busy",
            f"{counted(one.in_flight, 'message')} in flight, {one.in_retry:,} waiting for a retry. "
            f"The offset follows as they are acked.",
        )
    if resting and one.lag:
        return Verdict("resting", "idle", "The topology is deactivated. Activate it to go on.")
    if one.lag:
        return Verdict("behind", "busy", f"{counted(one.lag, 'message')} wait to be read.")
    return Verdict("done", "good", "All that is there is read and acked.")


def _is_stuck(one: PartitionView) -> bool:
    return one.oldest is not None and bool(one.held_by or one.held_why or one.in_retry)


def _why_stuck(one: PartitionView) -> str:
    where = f" in {one.held_by}" if one.held_by else ""
    why = f": {one.held_why}" if one.held_why else ""
    sentences = [
        f"The message at offset {one.oldest} failed{where}{why}.",
        f"The offset stays at {one.committed} until that message is acked or given up.",
    ]
    if one.acked_beyond:
        waiting = counted(one.acked_beyond, "later message")
        sentences.append(f"Because of it, {waiting} that are acked cannot be committed.")
    if one.paused:
        sentences.append("Too much waits already, so nothing new is read.")
    if one.halted:
        sentences.append("Somebody has halted the partition as well.")
    return " ".join(sentences)


def strip_of(one: PartitionView) -> Strip:
    """Return what stands behind the committed offset; a part that is there is seen."""
    counts = [one.acked_beyond, one.in_flight, one.in_retry, one.lag]
    unread = max(0, one.lag - sum(counts[:3]))
    parts = [one.acked_beyond, one.in_flight, one.in_retry, unread]
    least = [max(part, sum(parts) * 0.02) if part else 0 for part in parts]
    whole = sum(least) or 1
    return Strip(*(round(100 * part / whole, 2) for part in least))
