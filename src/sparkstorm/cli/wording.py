"""Texts as people can read them."""

__all__ = ["counted", "visible"]


def counted(number: int, thing: str) -> str:
    """Return a number of things.

    >>> counted(1, "dead letter"), counted(1200, "message")
    ('1 dead letter', '1,200 messages')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def visible(text: str) -> str:
    r"""Return a text without control characters, which could do anything to a terminal.

    >>> visible("a\tb\n\x1b[2J")
    'a\tb\n\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\t\n" else repr(c)[1:-1] for c in text)
