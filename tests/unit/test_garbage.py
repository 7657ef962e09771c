"""The cycle collector's threshold while a run is on."""

import gc
from collections.abc import Iterator

import pytest

from sparkstorm.garbage import rare_collections


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize("given", [(700, 10, 10), (2000, 10, 0)])
def test_collections_are_rare_for_a_while(given: tuple[int, int, int]) -> None:
    gc.set_threshold(*given)
    with rare_collections():
        assert gc.get_threshold() == (50_000, *given[1:])
    assert gc.get_threshold() == given


@pytest.mark.parametrize("given", [(0, 10, 10), (100_000, 5, 5)])
def test_the_users_own_setting_stays(given: tuple[int, int, int]) -> None:
    """No collections at all, or still rarer ones."""
    gc.set_threshold(*given)
    with rare_collections():
        assert gc.get_threshold() == given
    assert gc.get_threshold() == given
