"""The text beside a committed offset: who committed, for which offset of which topic, and the acks.

Other programs copy such texts: MirrorMaker 2 translates an offset and passes the text on. So the
text names its offset and topic, and counts for nothing beside another offset.
"""

import json
from collections.abc import Mapping
from typing import Any

from sparkstorm.kafka.offsets.acks import decode_acks, encode_acks
from sparkstorm.kafka.offsets.stored import Stored

__all__ = [
    "MOST_TEXT",
    "OtherTopicError",
    "UnfitTextError",
    "author_of",
    "from_text",
    "to_text",
]

MOST_TEXT = 4095
"""The room beside an offset at a broker by default, in UTF-16 units, less the client's NUL."""

_VERSION = 2
_NAMES = ("sparkstorm", "run", "topic", "base", "acks")


class UnfitTextError(ValueError):
    """The text belongs to another offset or topic, or is unreadable."""


class OtherTopicError(UnfitTextError):
    """The text is about this offset of another topic of the name, as ``run`` has committed it."""

    def __init__(self, run: str) -> None:
        super().__init__("the text belongs to another topic of that name")
        self.run = run


def to_text(stored: Stored, limit: int = MOST_TEXT) -> tuple[str, int]:
    """Return the text of a commit, and the number of acks beyond the offset without room.

    The text is empty if not even the part without acks fits into ``limit`` UTF-16 units.

    >>> to_text(Stored(7, [(8, 10)], "enrich-1f2e", "Zx-1"))
    ('{"sparkstorm":2,"run":"enrich-1f2e","topic":"Zx-1","base":7,"acks":"bYA"}', 0)
    """
    values = (_VERSION, stored.run, stored.topic_id, stored.offset, "")
    frame = json.dumps(dict(zip(_NAMES, values, strict=True)), separators=(",", ":"))
    room = limit - len(frame)
    acks, dropped = encode_acks(stored.offset, stored.done, max(room, 0), wide=True)
    return ("" if room < 0 else f'{frame[:-2]}{acks}"}}'), dropped


def from_text(offset: int, text: str, topic_id: str) -> Stored:
    """Return the progress of a text and its offset.

    Raises:
        OtherTopicError: the text is about another topic of the name.
        UnfitTextError: the text belongs to another offset or topic.
    """
    if not text:
        return Stored(offset)
    data = _frame_of(text)
    if data["base"] != offset:
        raise UnfitTextError(f"the text belongs to the offset {data['base']!r}")
    if data["topic"] != topic_id:
        raise OtherTopicError(str(data["run"]))
    try:
        acks = decode_acks(offset, data["acks"])
    except (ValueError, TypeError, AttributeError) as error:
        raise UnfitTextError(f"its acks are unreadable: {error}") from error
    return Stored(offset, acks, str(data["run"]), topic_id)


def author_of(text: str) -> str:
    """Return the run that wrote a text, for whichever offset.

    Raises:
        UnfitTextError: another program wrote the text.
    """
    return str(_frame_of(text)["run"])


def _frame_of(text: str) -> Mapping[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or "sparkstorm" not in data:
        raise UnfitTextError("the text is from another program")
    if data["sparkstorm"] != _VERSION:
        raise UnfitTextError(
            f"the text is of version {data['sparkstorm']!r}, and this is version {_VERSION}"
        )
    missing = [name for name in _NAMES if name not in data]
    if missing:
        raise UnfitTextError(f"the text lacks {missing[0]!r}")
    return data
