"""The tuple as a bolt sees it."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from sparkstorm.errors import TrackingError
from sparkstorm.tuples import Fields, Tuple


class From:
    """Where tuples come from."""

    component, stream, task = "split", "words", 4

    def __init__(self, *names: str) -> None:
        fields = Fields(names)
        self.names, self.index_of = fields.names, fields.index_of

    def identity(self, index: int) -> str:
        """Some id."""
        return f"id-{index}"

    def attempt(self, index: int) -> int:
        """Some attempt."""
        return index + 1


@pytest.fixture
def tup() -> Tuple:
    """A word and its count."""
    return Tuple(("storm", 3), From("word", "n"), 1)


def test_values_are_read_by_name_or_position(tup: Tuple) -> None:
    """As in Storm; slices and counting from the end are Python's."""
    assert (tup["word"], tup[1], tup[-1], tup.values[:1]) == ("storm", 3, 3, ("storm",))


def test_a_missing_field_is_named_with_those_there_are(tup: Tuple) -> None:
    """A typing mistake is seen at once."""
    with pytest.raises(KeyError, match=r"'wrod': the stream has the fields \('word', 'n'\)"):
        tup["wrod"]
    with pytest.raises(IndexError):
        tup[2]


def test_a_tuple_is_a_row(tup: Tuple) -> None:
    """It can be unpacked, counted, asked and turned into a dict."""
    word, n = tup
    assert (word, n, len(tup), "n" in tup, "storm" in tup) == ("storm", 3, 2, True, False)
    assert tup.asdict() == {"word": "storm", "n": 3}
    assert tup.values == ("storm", 3)


def test_a_tuple_knows_where_it_comes_from(tup: Tuple) -> None:
    """Its component, stream, task and fields; its id and attempt."""
    assert (tup.component, tup.stream, tup.task) == ("split", "words", 4)
    assert tup.fields == ("word", "n")
    assert (tup.id, tup.attempt) == ("id-1", 2)


def test_two_tuples_are_never_equal() -> None:
    """Equal values do not make them the same tuple."""
    origin = From("a")
    one, other = Tuple((1,), origin, 0), Tuple((1,), origin, 0)
    assert one == one
    assert one != other
    assert len({one, other}) == 2


def test_a_tuple_shows_its_values(tup: Tuple) -> None:
    """By name, with its origin."""
    assert repr(tup) == "Tuple(split/words: word='storm', n=3)"
    assert repr(Fields(["a", "b"])) == "Fields(['a', 'b'])"


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_tuple_cannot_be_kept_elsewhere(tup: Tuple, take: Callable[[Any], Any]) -> None:
    """It is tracked where it was received; the error says what to keep instead."""
    with pytest.raises(TrackingError, match=r"cannot be kept there.*keep its values"):
        take(tup)
