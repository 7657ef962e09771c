"""What becomes of a topology on a Spark that lacks private parts; and that they stand in a list."""

import logging
import re
from pathlib import Path

import pytest

import sparkstorm as ss
from sparkstorm.planning.passes import make_plan
from sparkstorm.planning.plan import Plan
from sparkstorm.spark import internals
from sparkstorm.spark.driver.self_test import judge
from sparkstorm.spark.internals import NEEDS
from sparkstorm.spark.needs import Need, Vital
from sparkstorm.testing import LogSpout

BUILD = "4.3.0 vendors"


class Remember(ss.StatefulBolt):
    """Keeps nothing yet."""

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.ack(tup)


class Show(ss.BasicBolt):
    """Does nothing."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        pass


def plan_of(bolt: ss.Bolt | ss.BasicBolt, guarantee: str = "at-least-once") -> Plan:
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", LogSpout([[1]], "n int"))
    builder.set_bolt("bolt", bolt).shuffle_grouping("numbers")
    config = ss.Config.parse({"processing.guarantee": guarantee})
    return make_plan(builder.create_topology(), name="life", config=config)


def need(vital: Vital) -> Need:
    return Need(
        owner="org.apache.spark.Foo",
        name="bar",
        why="a reason",
        since="4.3",
        without="no search",
        vital=vital,
    )


def test_a_spark_that_has_all_is_not_talked_about(caplog: pytest.LogCaptureFixture) -> None:
    """Neither error nor warning."""
    judge([], plan_of(Remember()), BUILD)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("vital", "plan"),
    [
        (Vital.ALL, plan_of(Show())),
        (Vital.STATE, plan_of(Remember())),
        (Vital.STATE, plan_of(Show(), "exactly-once")),
    ],
)
def test_a_topology_whose_results_could_be_wrong_is_refused(vital: Vital, plan: Plan) -> None:
    """In one sentence that names the build, what is missing, and the mend."""
    with pytest.raises(
        ss.EnvironmentFault,
        match=r"\(4\.3\.0 vendors\).*wrong: Foo\.bar is missing \(no search\)\. Use PySpark",
    ):
        judge([need(vital)], plan, BUILD)


@pytest.mark.parametrize("vital", [Vital.NONE, Vital.STATE])
def test_what_is_off_for_the_others_is_told_once(
    vital: Vital, caplog: pytest.LogCaptureFixture
) -> None:
    """The topology runs without it."""
    judge([need(vital), need(Vital.NONE)], plan_of(Show()), BUILD)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.message.count("Foo.bar is missing (no search)") == 2


def test_private_parts_are_touched_in_the_list_alone() -> None:
    """An access elsewhere would not be held against the Spark that runs."""
    private = re.compile(r"SLF001|\._j(?:sc|vm|sq|df)\b|\._jsparkSession|(?<!self)\._gateway\b")
    folder = Path(internals.__file__).parent
    touching = {
        file.relative_to(folder).as_posix()
        for file in folder.rglob("*.py")
        if private.search(re.sub(r"self\._jvm\b", "", file.read_text(encoding="utf-8")))
    }
    assert touching == {"internals.py", "source_internals.py"}


def test_each_part_says_why_and_what_is_off_without_it() -> None:
    """And none stands there twice."""
    assert len({(one.owner, one.name) for one in NEEDS}) == len(NEEDS)
    for one in NEEDS:
        assert one.why
        assert one.without
        assert re.fullmatch(r"\d\.\d", one.since)
