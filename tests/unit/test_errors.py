"""The exceptions: their tree, and how they cross processes."""

import copy
import inspect
import pickle

import pytest

from sparkstorm import errors
from sparkstorm.errors import SparkstormError, TopologyError

EVERY = [
    e for _, e in inspect.getmembers(errors, inspect.isclass) if e.__module__ == errors.__name__
]


@pytest.mark.parametrize("error", EVERY, ids=lambda error: error.__name__)
def test_every_error_is_ours_and_in_the_picture(error: type[Exception]) -> None:
    """One base; the module's docstring draws the whole tree."""
    assert issubclass(error, SparkstormError)
    assert error.__name__ in errors.__all__
    assert error.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize("error", EVERY, ids=lambda error: error.__name__)
def test_every_error_crosses_processes(error: type[Exception]) -> None:
    """Workers report by pickle."""
    found = pickle.loads(pickle.dumps(error("what is wrong")))
    assert type(found) is error
    assert str(found) == "what is wrong"


def test_a_topology_error_lists_all_faults() -> None:
    """As lines of its text, and one by one; also after a copy."""
    error = TopologyError(["one", "two"])
    assert error.faults == copy.copy(error).faults == ("one", "two")
    assert str(error) == "one\ntwo"
    assert TopologyError("one").faults == ("one",)
