"""Wording: counts with their nouns."""

__all__ = ["counted"]


def counted(number: int, thing: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "dead letter"), counted(1200, "message")
    ('1 dead letter', '1,200 messages')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
