"""What user code raises: its text is that of Python, whichever of many it is."""

import json
import traceback
from collections.abc import Callable

import numpy as np
import pytest

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.packets.failures import pack_failed, unpack_failed
from sparkstorm.texts.user_errors import Tracebacks, message_of
from sparkstorm.verdicts import Failure, Reason


def plain(number: int) -> None:
    raise ValueError(f"{number} is wrong")


def elsewhere(number: int) -> None:
    plain(number)


def noted(number: int) -> None:
    error = KeyError(number)
    error.add_note(f"the note of {number}")
    raise error


def caused(number: int) -> None:
    try:
        plain(number)
    except ValueError as error:
        raise RuntimeError("so it goes") from error


def beside(number: int) -> None:
    try:
        plain(number)
    except ValueError:
        raise RuntimeError(number)  # noqa: B904 - the one is told with the other


def hidden(number: int) -> None:
    try:
        plain(number)
    except ValueError:
        raise RuntimeError(number) from None


def grouped(number: int) -> None:
    raise ExceptionGroup("several", [ValueError(number), KeyError(number)])


def never(number: int) -> None:
    raise AssertionError


def raised(fails: Callable[[int], None], number: int) -> BaseException:
    if fails is never:
        return ValueError(number)
    try:
        fails(number)
    except Exception as error:  # noqa: BLE001 - whatever it is
        return error
    raise AssertionError


WAYS = [plain, elsewhere, noted, caused, beside, hidden, grouped, never]


@pytest.mark.parametrize("fails", WAYS, ids=lambda fails: fails.__name__)
def test_the_text_is_that_of_python(fails: Callable[[int], None]) -> None:
    """For the first one that comes a way, and for those that follow with other messages."""
    texts = Tracebacks()
    for other in WAYS:
        texts.text(raised(other, 0))
    for number in range(3):
        error = raised(fails, number)
        assert texts.text(error) == "".join(traceback.format_exception(error))


class Wordless(Exception):
    """Cannot even say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_error_without_a_text_is_told_by_its_type() -> None:
    """Whatever its text does; and a text is not longer than people read."""
    assert message_of(Wordless()) == "Wordless: <exception str() failed>"
    long = message_of(ValueError("x" * 100_000))
    assert long == f"ValueError: {'x' * 2000}… (100,000 characters)"


def test_a_long_text_keeps_its_end() -> None:
    """There the error stands."""
    text = Tracebacks().text(raised(noted, 10**4000))
    assert len(text) == 8000
    assert text.endswith("0000\n")


@pytest.mark.sweep
def test_tracebacks_that_are_nearly_alike_share_their_lines() -> None:
    """A batch in which a database is away: each tuple fails, all in the same place."""
    texts = Tracebacks()
    failures = [
        Failure(reason=Reason.ERROR, traceback=texts.text(raised(elsewhere, number)))
        for number in range(20_000)
    ]
    roots = np.arange(len(failures), dtype=np.uint64)
    failed = FailedRoots.first_of_each(roots, failures)
    packed = pack_failed(failed)
    assert unpack_failed(packed) == failed
    lines = json.loads(packed[0])["lines"]
    assert sum(map(len, lines)) < 40 * len(failures)
