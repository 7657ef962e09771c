"""The private parts of Spark that we lean on, on the Spark that runs."""

from dataclasses import replace
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.spark.driver import self_test
from sparkstorm.spark.driver.self_test import missing
from sparkstorm.spark.internals import NEEDS
from sparkstorm.spark.needs import Need, Vital
from sparkstorm.spouts import IteratorSpout

pytestmark = pytest.mark.spark


def need(owner: str, name: str = "", *takes: str) -> Need:
    return Need(owner=owner, name=name, takes=takes, why="", since="", without="all is off")


def test_this_spark_has_all_of_them(spark: Any) -> None:
    """Else the list, or what leans on it, has to change."""
    assert missing(spark.sparkContext, NEEDS) == ()


@pytest.mark.parametrize(
    "lacking",
    [
        need("org.apache.spark.NoSuchClass"),
        need("org.apache.spark.ContextCleaner", "doCleanupShuffles", "int", "boolean"),
        need("org.apache.spark.ContextCleaner", "doCleanupShuffle", "int"),
        need("pyspark.SparkContext", "_no_such_attribute"),
        need("pyspark.sql.streaming.StreamingQuery", "_no_such_attribute"),
        need("pyspark.no_such_module", "manager"),
    ],
)
def test_what_is_not_there_is_found_missing(spark: Any, lacking: Need) -> None:
    """A class, a method, other arguments, an attribute of a class or of its objects, a module."""
    assert missing(spark.sparkContext, [*NEEDS, lacking]) == (lacking,)


def test_a_run_is_refused_before_it_begins(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found out is kept by the build of Spark, for the next run."""
    lacking = replace(need("org.apache.spark.NoSuchClass"), vital=Vital.ALL)
    monkeypatch.setattr(self_test, "NEEDS", (*NEEDS, lacking))
    monkeypatch.setattr(self_test, "_FOUND", {})
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", IteratorSpout(range(3), "n long"))
    with pytest.raises(ss.EnvironmentFault, match=r"NoSuchClass is missing \(all is off\)"):
        ss.submit(builder.create_topology(), session=spark)
    assert list(self_test._FOUND.values()) == [(lacking,)]
