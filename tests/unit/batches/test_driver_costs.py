"""What the driver spends on a batch grows with what the batch holds, not with a product.

Costs are CPU seconds of two sizes, compared as a ratio, so that a slow machine changes nothing.
"""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparkstorm.acking.failed import FailedRoots

pytestmark = pytest.mark.sweep

COSTS: dict[str, Any] = runpy.run_path(
    str(Path(__file__).parents[3] / "benchmarks/driver_costs.py"), run_name="costs"
)


def ratio(small: Callable[[], float], large: Callable[[], float]) -> float:
    """How much more the large one costs, each at its best of three."""
    return min(large() for _ in range(3)) / min(small() for _ in range(3))


def test_open_roots_cost_the_same_over_however_many_batches_they_are_spread() -> None:
    """20,000 of 20 batches, and of 1,000."""
    costs = COSTS["open_windows"]
    assert ratio(lambda: costs(20, each=1000), lambda: costs(1000, each=20)) < 5


def test_open_roots_cost_the_same_with_however_many_ackers() -> None:
    """The results of all are put together before anything is looked up."""
    costs = COSTS["open_windows"]
    few, many = (lambda n=n: costs(500, each=20, ackers=n) for n in (1, 16))
    assert ratio(few, many) < 5


def test_loads_cost_each_as_much_as_the_one_before() -> None:
    """Ten times as many, at fifty times the price at most: a square would be a hundred."""
    costs = COSTS["many_loads"]
    assert ratio(lambda: costs(300, 16), lambda: costs(3000, 16)) < 50


def test_a_batch_costs_each_partition_and_spout_task_as_much_as_the_one_before() -> None:
    """Ten times as many of both, at fifty times the price at most: a product would be a hundred."""
    costs = COSTS["batches"]
    small, large = (lambda n=n: costs(n, spouts=n) for n in (100, 1000))
    assert ratio(small, large) < 50


def test_failures_cost_the_same_over_however_many_loads_they_are_spread() -> None:
    """100,000 of 100 loads, and of 1,000."""
    costs = COSTS["failures"]
    few, many = (lambda n=n: costs(100_000, tasks=50, each=n)[0] for n in (1000, 100))
    assert ratio(few, many) < 5


@pytest.mark.parametrize("texts", [False, True])
def test_failures_cost_each_as_much_as_the_one_before(texts: bool) -> None:
    """Ten times as many, at thirty times the price at most: with one text, and with one each."""
    costs = COSTS["failures"]
    small, large = (lambda n=n: costs(n, tasks=20, texts=texts)[0] for n in (3_000, 30_000))
    assert ratio(small, large) < 30


@pytest.mark.parametrize("texts", [False, True])
def test_what_failures_weigh_is_bounded(texts: bool) -> None:
    """A few bytes for each root, and the texts that there is room for, whatever they are."""
    _, nbytes = COSTS["failures"](50_000, tasks=100, texts=texts)
    assert nbytes < 50_000 * 9 + 16 * 600_000 * texts + 16 * 100 * 400


def test_one_cause_stays_one_cause() -> None:
    """However many messages fail of it, it is held once for each task that told it."""
    roots = np.arange(10_000, dtype=np.uint64)
    results = COSTS["results_of"](COSTS["failing"](roots, tasks=10, texts=False))
    failed = FailedRoots.merge([result.failed for result in results])
    assert (len(failed), len(failed.causes)) == (10_000, 10)
    [(why, places)] = failed.by_text(0)
    assert (why.message, places) == ("ConnectionError: it is away", [(0, 10_000)])


def test_failures_of_a_hosted_spout_cost_each_as_much_as_the_one_before() -> None:
    """Ten times as many, at fifty times the price at most: a square would be a hundred."""
    costs = COSTS["hosted"]
    assert ratio(lambda: costs(4_000), lambda: costs(40_000)) < 50


def test_a_root_is_told_of_once_whatever_the_number_of_holders() -> None:
    """Each holder hears of what it holds: 200 of them cost no more bytes than ten."""
    (few, small), (many, large) = (COSTS["signals"](n, 100_000) for n in (10, 200))
    assert large - small < 200 * 100
    assert many < 10 * few + 0.1


@pytest.mark.slow
def test_a_million_failures_cost_no_more_each_than_ten_thousand() -> None:
    """A thousand tasks whose database is away; a hundred times as many, three hundred times."""
    costs = COSTS["failures"]
    small, large = (lambda n=n: costs(n, tasks=1000)[0] for n in (10_000, 1_000_000))
    assert ratio(small, large) < 300
