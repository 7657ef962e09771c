"""Which settings of Spark a topology can run with."""

import signal
import subprocess
from typing import Any

import pytest
from pyspark import SparkConf

import sparkstorm as ss
from sparkstorm.planning.passes import make_plan
from sparkstorm.planning.plan import Plan
from sparkstorm.spark.driver.self_test import check_conf
from sparkstorm.spark.driver.session import kill_with_group
from sparkstorm.testing import PATIENCE_SECS, LogSpout


class Keep(ss.StatefulBolt):
    """Keeps nothing yet."""

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.ack(tup)


class Pass(ss.BasicBolt):
    """Does nothing."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        pass


def plan_of(bolt: ss.Bolt | ss.BasicBolt, **config: Any) -> Plan:
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", LogSpout([[1]], "n int"))
    builder.set_bolt("bolt", bolt).shuffle_grouping("numbers")
    return make_plan(builder.create_topology(), name="t", config=ss.Config(**config))


PLANS = {
    "state": plan_of(Keep()),
    "exactly-once": plan_of(Pass(), processing_guarantee="exactly-once"),
    "neither": plan_of(Pass()),
}


@pytest.mark.parametrize("name", ["state", "exactly-once"])
def test_spark_must_be_able_to_forget_outputs(name: str) -> None:
    """Refused at the start, not when the first batch has to be rolled back."""
    conf = SparkConf(loadDefaults=False).set("spark.cleaner.referenceTracking", "false")
    with pytest.raises(ss.ConfigError, match="Leave that setting out"):
        check_conf(conf, PLANS[name])
    check_conf(conf, PLANS["neither"])


@pytest.mark.parametrize("name", PLANS)
def test_usual_settings_do(name: str) -> None:
    """Spark's default is to track."""
    check_conf(SparkConf(loadDefaults=False), PLANS[name])


@pytest.mark.process
@pytest.mark.parametrize("leads", [False, True])
def test_a_process_ends_whether_or_not_it_leads_a_group_yet(leads: bool) -> None:
    """A signal may come between the fork of Spark's JVM and the group that the JVM makes."""
    with subprocess.Popen(["sleep", "1000"], start_new_session=leads) as process:
        kill_with_group(process.pid)
        assert process.wait(PATIENCE_SECS) == -signal.SIGKILL
