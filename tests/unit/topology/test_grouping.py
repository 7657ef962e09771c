"""Groupings as values."""

from collections.abc import Sequence
from typing import Any

import pytest

from sparkstorm.topology.grouping import (
    All,
    Custom,
    CustomGrouping,
    Direct,
    FieldsGrouping,
    Global,
    Grouping,
    LocalOrShuffle,
    NoneGrouping,
    PartialKey,
    Shuffle,
    describe,
)


class Nearest(CustomGrouping):
    """A grouping of a user's own."""

    def choose_tasks(
        self, values: Sequence[Any], tasks: Sequence[int], sequence: int
    ) -> Sequence[int]:
        return tasks[:1]


@pytest.mark.parametrize(
    ("grouping", "text"),
    [
        (Shuffle(), "shuffle"),
        (LocalOrShuffle(), "local_or_shuffle"),
        (NoneGrouping(), "none"),
        (FieldsGrouping(("a", "b")), "fields(a, b)"),
        (PartialKey(("a",)), "partial_key(a)"),
        (All(), "all"),
        (Global(), "global"),
        (Direct(), "direct"),
        (Custom(Nearest()), "custom(Nearest)"),
    ],
)
def test_a_grouping_is_described_as_people_write_it(grouping: Grouping, text: str) -> None:
    """In plans and in messages."""
    assert describe(grouping) == text


def test_a_custom_grouping_must_choose() -> None:
    """It is abstract without the one method."""
    with pytest.raises(TypeError, match="abstract"):
        CustomGrouping()  # type: ignore[abstract]
