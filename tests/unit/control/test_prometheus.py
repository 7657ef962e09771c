"""The exposition, read by Prometheus' own parser."""

import math
from pathlib import Path
from typing import Any

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families as parse

import sparkstorm as ss
from sparkstorm.control.client import DriverGoneError
from sparkstorm.control.prometheus import _FAMILIES, exposition
from tests.unit.control.test_control import shop


class Gone:
    """The control of a topology whose driver has ended."""

    def __getattr__(self, name: str) -> Any:
        raise DriverGoneError("it has ended")


def read(text: str) -> dict[str, Metric]:
    """Return the families by name; the parser takes ``_total`` off."""
    return {family.name: family for family in parse(text)}


def value(families: dict[str, Metric], sample: str, **labels: str) -> float:
    found = [
        one.value
        for family in families.values()
        for one in family.samples
        if one.name == sample and labels.items() <= one.labels.items()
    ]
    assert len(found) == 1, (sample, found)
    return found[0]


def test_counts_are_those_of_the_topology(tmp_path: Path) -> None:
    with shop(tmp_path, "tea", "unknown", "milk", max_retries=0) as here:
        here.runner.run_until_idle()
        families = read(exposition({"shop": here.control}))
    assert value(families, "sparkstorm_up") == 1
    assert value(families, "sparkstorm_status", status="ACTIVE") == 1
    assert value(families, "sparkstorm_status", status="KILLED") == 0
    assert value(families, "sparkstorm_messages_acked_total") == 2
    assert value(families, "sparkstorm_attempts_failed_total", reason="error") == 1
    assert value(families, "sparkstorm_dead_letters_total") == 1
    stream = {"component": "price", "source": "orders", "stream": "default"}
    assert value(families, "sparkstorm_tuples_executed_total", **stream) == 3
    assert value(families, "sparkstorm_tuples_failed_total", **stream) == 1
    assert value(families, "sparkstorm_batch_target_seconds") > 0


def test_histograms_are_cumulative_and_end_with_all(tmp_path: Path) -> None:
    with shop(tmp_path, *["tea"] * 500) as here:
        here.runner.run_until_idle()
        families = read(exposition({"shop": here.control}))
    samples = families["sparkstorm_execute_seconds"].samples
    buckets = [one.value for one in samples if one.name.endswith("_bucket")]
    assert buckets == sorted(buckets)
    assert buckets[-1] == value(families, "sparkstorm_execute_seconds_count") == 500
    assert value(families, "sparkstorm_execute_seconds_bucket", le="+Inf") == 500


def test_hostile_names_stay_inside_their_labels(tmp_path: Path) -> None:
    with shop(tmp_path, "tea") as here:
        text = exposition({'a"} 1\nforged_metric 7\\': Gone(), "shop": here.control})
    families = read(text)
    assert "forged_metric" not in families
    assert 'a"} 1\nforged_metric 7\\' in {
        one.labels.get("topology") for one in families["sparkstorm_up"].samples
    }


class Own(ss.BasicBolt):
    """Counts and measures what a hostile mind can think of."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        for name, amount in (("nan", math.nan), ("up", math.inf), ("down", -math.inf)):
            self.context.count(name, amount)
        self.context.observe("bytes", 2000)
        self.context.observe("bytes", 3)
        raise ValueError("not this")


def test_the_users_own_metrics_are_told_whatever_they_are(tmp_path: Path) -> None:
    with shop(tmp_path, "tea", bolt=Own(), max_retries=0) as here:
        here.runner.run_until_idle()
        families = read(exposition({"shop": here.control}))
    assert math.isnan(value(families, "sparkstorm_user_total", counter="nan"))
    assert value(families, "sparkstorm_user_total", counter="up") == math.inf
    assert value(families, "sparkstorm_user_total", counter="down") == -math.inf
    assert value(families, "sparkstorm_user_observed_count", histogram="bytes") == 2
    assert value(families, "sparkstorm_user_observed_sum", histogram="bytes") == 2003
    failed = "sparkstorm_component_failed_total"
    assert value(families, failed, component="price", reason="error") == 1


def test_names_that_are_no_utf8_do_not_spoil_the_page() -> None:
    """A partition may be a file with any name."""
    families = read(exposition({"\ud800": Gone()}).encode().decode())
    (up,) = families["sparkstorm_up"].samples
    assert up.labels == {"topology": r"\ud800"}


def test_a_driver_that_is_gone_is_down_and_hides_no_other(tmp_path: Path) -> None:
    with shop(tmp_path, "tea") as here:
        families = read(exposition({"gone": Gone(), "shop": here.control}))
    assert value(families, "sparkstorm_up", topology="gone") == 0
    assert value(families, "sparkstorm_up", topology="shop") == 1


def test_an_old_message_shows_its_age(tmp_path: Path) -> None:
    with shop(tmp_path, "unknown", max_retries=9) as here:
        here.runner.step()
        here.runner.plan_batch()
        here.clock.advance(3600)
        families = read(exposition({"shop": here.control}))
    assert value(families, "sparkstorm_oldest_message_age_seconds") >= 3600


def test_every_family_has_a_sentence() -> None:
    assert all(text.endswith(".") for _, text in _FAMILIES.values())
    assert all(name.startswith("sparkstorm_") for name in _FAMILIES)
    counters = {name for name, (kind, _) in _FAMILIES.items() if kind == "counter"}
    assert counters == {name for name in _FAMILIES if name.endswith("_total")}
