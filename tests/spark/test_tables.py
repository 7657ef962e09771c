"""``spark.read.format("sparkstorm")``: a checkpoint as tables, during a run and after."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.spark import register
from sparkstorm.spouts import LinesSpout
from sparkstorm.testing import PATIENCE_SECS, wait_until

pytestmark = pytest.mark.spark


def topology(text: Path) -> ss.Topology:
    """Numbers, counted; the bolt's class travels by value."""

    class Count(ss.StatefulBolt):
        def execute(self, tup: ss.Tuple) -> None:
            if tup["sentence"] == "hold":
                self.state.tuples("held").add("hold", tup)
                return
            self.state.add(int(tup["sentence"]))
            self.state.named("seen").put(("line", tup["sentence"]), {"odd": [1, 2]})
            self.collector.ack(tup)

    builder = ss.TopologyBuilder()
    builder.set_spout("lines", LinesSpout(text))
    builder.set_bolt("count", Count(), 2).fields_grouping("lines", "sentence")
    return builder.create_topology()


def rows(spark: Any, where: Path, table: str) -> list[dict[str, Any]]:
    reader = spark.read.format("sparkstorm").option("checkpoint", str(where))
    return [row.asDict() for row in reader.load(table).collect()]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.slow  # the query of the documentation is its quick sibling
def test_a_checkpoint_as_tables(spark: Any, tmp_path: Path) -> None:
    """One line becomes a letter, one waits for a retry, one is held; the others are done."""
    register(spark)
    text, where = tmp_path / "in.txt", tmp_path / "checkpoint"
    text.write_text("1\n2\ntwo\n1\n")
    once = {"max_retries": 0}
    with ss.submit(topology(text), session=spark, checkpoint=where, name="t", config=once) as run:
        assert run.wait_until_drained(PATIENCE_SECS)
    patient = {"max_retries": 9, "retry_backoff_secs": 3600.0, "retry_backoff_max_secs": 3600.0}
    with text.open("a") as file:
        file.write("hold\nthree\n")
    with ss.submit(
        topology(text), session=spark, checkpoint=where, name="t", config=patient
    ) as run:
        wait_until(lambda: run.statistics().failed == 1 and run.statistics().pending == 2)
        with text.open("a") as file:  # the next plan tells what waits
            file.write("3\n")
        wait_until(lambda: run.statistics().acked == 1)
        while_running = rows(spark, where, "messages")
        run.stop(drain=False)
    before = contents(where)

    path = str(text)
    for messages in (while_running, rows(spark, where, "messages")):
        waiting = {row["offset"]: row for row in messages if row["state"] == "waiting"}
        assert list(waiting) == [6]
        assert (waiting[6]["partition"], waiting[6]["attempt"]) == (path, 2)
        assert waiting[6]["why"] == "ValueError: invalid literal for int() with base 10: 'three'"
        assert [row["offset"] for row in messages if row["state"] == "held"] == [5]

    attempts = {row["offset"]: row for row in rows(spark, where, "attempts")}
    assert {offset: row["outcome"] for offset, row in attempts.items()} == {
        3: "dead letter",
        6: "retry",
    }
    assert (attempts[6]["attempt"], attempts[6]["component"]) == (1, "count")
    assert "in execute" in attempts[3]["traceback"]

    (letter,) = rows(spark, where, "dead_letters")
    assert json.loads(letter["payload"]) == {"sentence": "two"}
    assert (letter["id"], letter["offset"]) == (attempts[3]["letter"], 3)
    assert letter["last_time"] > letter["first_time"]

    (partition,) = rows(spark, where, "partitions")
    assert partition["partition"] == path
    assert (partition["pending"], partition["waiting"], partition["dead_letters"]) == (2, 1, 1)
    assert (partition["oldest"], partition["planned"]) == (5, 7)

    state = {(row["state"], row["key"]): row["value"] for row in rows(spark, where, "state")}
    assert (state["", "1"], state["", "2"], state["", "3"]) == ("2", "1", "1")
    assert json.loads(state["seen", '{"$": "tuple", "v": ["line", "3"]}']) == {"odd": [1, 2]}
    assert "tuples/held" in {name for name, _ in state}

    query = """
        SELECT offset, why FROM attempts JOIN wanted USING (offset) WHERE why LIKE 'ValueError%'
    """
    reader = spark.read.format("sparkstorm").option("checkpoint", str(where))
    reader.load("attempts").createOrReplaceTempView("attempts")
    spark.createDataFrame([(6,), (9,)], "offset bigint").createOrReplaceTempView("wanted")
    assert [row["offset"] for row in spark.sql(query).collect()] == [6]
    assert contents(where) == before


@pytest.mark.parametrize(
    ("options", "table", "words"),
    [
        ({}, "messages", "option('checkpoint', DIR)"),
        ({"checkpoint": "/nowhere"}, "messages", "no checkpoint of sparkstorm"),
        ({"checkpoint": "/nowhere"}, "tuples", "there is no table 'tuples': load one of messages"),
        ({"checkpoint": "nofs://x/y"}, "messages", "cannot be opened"),
    ],
)
def test_a_mistake_is_named(spark: Any, options: dict[str, str], table: str, words: str) -> None:
    register(spark)
    with pytest.raises(Exception, match="sparkstorm") as caught:
        spark.read.format("sparkstorm").options(**options).load(table).collect()
    assert words in str(caught.value)


def test_the_query_of_the_documentation(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page shows the very output."""
    page = (Path(__file__).parents[2] / "docs/dead-letters.md").read_text(encoding="utf-8")
    page = page.partition("<!-- executed by tests/spark/test_tables.py -->")[2]
    query, shown = re.findall(r"```(?:python)?\n(.*?)```", page, re.DOTALL)[:2]

    class Parse(ss.BasicBolt):
        outputs = "n long"

        def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
            collector.emit([int(tup["sentence"])])

    text, where = tmp_path / "in.txt", tmp_path / "checkpoint"
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", LinesSpout(text))
    builder.set_bolt("parse", Parse()).shuffle_grouping("lines")
    topology = builder.create_topology()
    text.write_text("1\ntwo\n")
    run = ss.submit(topology, session=spark, checkpoint=where, name="t", config={"max_retries": 0})
    with run:
        assert run.wait_until_drained(PATIENCE_SECS)
    patient = {"retry_backoff_secs": 3600.0, "retry_backoff_max_secs": 3600.0}
    with text.open("a") as file:
        file.write("3\nfour\n")
    with ss.submit(topology, session=spark, checkpoint=where, name="t", config=patient) as run:
        wait_until(lambda: run.statistics().failed == 1)
        run.stop(drain=False)
    spark.createDataFrame(
        [(2, "Ann"), (3, "Cid"), (4, "Bob")], "offset bigint, customer string"
    ).createOrReplaceTempView("customers")
    spark.catalog.dropTempView("attempts")
    exec(query, {"spark": spark, "checkpoint": where})  # noqa: S102 - our own text
    assert capsys.readouterr().out.strip() == shown.strip()
