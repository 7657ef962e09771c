"""Calls of a spout's methods: an error in them is the spout's fault, not Spark's or ours."""

from collections.abc import Iterator
from contextlib import contextmanager

from sparkstorm.errors import ComponentError, SparkstormError
from sparkstorm.texts.credentials import untold
from sparkstorm.texts.user_errors import message_of

__all__ = ["calling"]


@contextmanager
def calling(spout: str, method: str) -> Iterator[None]:
    """Stand around a call of the user's code.

    >>> with calling("lines", "exhausted"):
    ...     1 / 0
    Traceback (most recent call last):
    sparkstorm.errors.ComponentError: spout 'lines' raised in exhausted: ZeroDivisionError: ...

    Raises:
        ComponentError: it raised; errors that say whose fault it is stay as they are.
    """
    try:
        yield
    except SparkstormError:
        raise
    except Exception as error:  # noqa: BLE001 - user code
        raise ComponentError(
            f"spout {spout!r} raised in {method}: {message_of(error)}"
        ) from untold(error)
