"""Wording: counts with their nouns."""

__all__ = ["counted"]


def counted(number: int, thing: str, things: str = "") -> str:
    """Return a number with its noun.

    >>> counted(1, "dead letter"), counted(1200, "message"), counted(0, "batch", "batches")
    ('1 dead letter', '1,200 messages', '0 batches')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {things or f'{thing}s'}"
