"""The run of a topology on Spark: sessions, stopping, restarting, and what fails on the way."""

import contextlib
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import cloudpickle
import pytest

import sparkstorm as ss
from sparkstorm import spouts
from sparkstorm.spark.driver.session import check_given, query_session, write_no_crc_files
from sparkstorm.spark.keys import partition_keys, spark_hash
from sparkstorm.spouts import LinesSpout
from sparkstorm.testing import PATIENCE_SECS, FeederSpout, wait_until

pytestmark = pytest.mark.spark


class Ack(ss.Bolt):
    """Only acks."""

    outputs = "n int"

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.ack(tup)


class AckOdd(ss.Bolt):
    """Acks odd numbers only."""

    def execute(self, tup: ss.Tuple) -> None:
        if tup["n"] % 2:
            self.collector.ack(tup)


class CountLines(ss.StatefulBolt):
    """Counts lines in state, and fails some at first."""

    outputs = "line string, count long"

    def execute(self, tup: ss.Tuple) -> None:
        if tup["sentence"].endswith("7") and tup.attempt == 1:
            self.collector.fail(tup, "a seven")
            return
        count = self.state.get(tup["sentence"], 0) + 1
        self.state.put(tup["sentence"], count)
        self.collector.emit([tup["sentence"], count], anchors=tup)
        self.collector.ack(tup)


class Daemon(ss.Bolt):
    """Emits the process id of Spark's Python daemon: workers are its children."""

    outputs = "pid long"

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.emit([os.getppid()], anchors=tup)
        self.collector.ack(tup)


class StatefulDaemon(ss.StatefulBolt):
    """Likewise, from a stage with state."""

    outputs = "pid long"

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.emit([os.getppid()], anchors=tup)
        self.collector.ack(tup)


class OnlyHere:
    """Loads in the process that has made it, as if only that had the module."""

    def __reduce__(self) -> Any:
        return _load, (os.getpid(),)


def _load(made_in: int) -> OnlyHere:
    if os.getpid() != made_in:
        raise ModuleNotFoundError("No module named 'acme'")
    return OnlyHere()


class NeedsModule(ss.Bolt):
    """Comes with what no worker can load."""

    def __init__(self) -> None:
        self.needed = OnlyHere()

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.ack(tup)


class LookUp(ss.StatefulBolt):
    """Comes with a large table."""

    def __init__(self, table: bytes) -> None:
        self.table = table

    def execute(self, tup: ss.Tuple) -> None:
        assert len(self.table) > tup["n"]
        self.collector.ack(tup)


class Breaking(ss.Spout):
    """Raises in next_tuple."""

    outputs = "n int"

    def next_tuple(self) -> None:
        raise RuntimeError("the queue is on fire")


@pytest.fixture(autouse=True)
def _ship_the_classes_of_this_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Send the bolts of this module to the workers, which cannot import it."""
    module: ModuleType = request.module
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


def wired(spout: Any, bolt: Any, **options: Any) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("spout", spout)
    builder.set_bolt("bolt", bolt, **options).shuffle_grouping("spout")
    return builder.create_topology()


@contextlib.contextmanager
def running(topology: ss.Topology, session: Any, **options: Any) -> Iterator[Any]:
    run = ss.submit(topology, name="test", session=session, **options)
    try:
        yield run
    finally:
        run.stop(drain=False)


def test_stages_with_and_without_state_share_their_workers(spark: Any) -> None:
    """Spark has a daemon for each environment of workers: one is enough."""
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", spouts.IteratorSpout([1, 2], "n int"))
    builder.set_bolt("plain", Daemon()).shuffle_grouping("numbers")
    builder.set_bolt("stateful", StatefulDaemon()).shuffle_grouping("plain")
    found: dict[str, set[int]] = {}

    def note(stream: Any, task: int, tuples: Any) -> None:
        found.setdefault(stream.component, set()).update(pid for (pid,) in tuples)

    taps = ["plain", "stateful"]
    with running(builder.create_topology(), spark, taps=taps, on_tap=note) as run:
        assert run.wait_until_drained(PATIENCE_SECS)
    assert found["plain"] == found["stateful"]
    assert len(found["plain"]) == 1


def test_what_workers_lack_ends_the_run_at_once(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Executors without a package of the topology: no message is searched for, no restart tried."""
    topology = wired(spouts.IteratorSpout([1, 2], "n int"), NeedsModule())
    words = r"cannot load the topology: .*'acme'\. Inst"
    with running(topology, spark) as run, pytest.raises(ss.EnvironmentFault, match=words):
        run.wait_until_drained(PATIENCE_SECS)
    assert "run again" not in caplog.text
    assert "started again" not in caplog.text


def test_group_keys_fall_into_their_partitions(spark: Any) -> None:
    """Our murmur3 is Spark's, so each key of state lies in the partition it was searched for."""
    from pyspark.sql import functions as sf

    texts = ["", "a", "ab", "abc", "abcd", "word count", "žluťoučký kůň 😀"]
    texts += [key for count in (1, 2, 5, 16) for key in partition_keys(count)]
    rows = spark.createDataFrame([(text,) for text in texts], "text string")
    hashes = {
        row["text"]: row["hash"] for row in rows.withColumn("hash", sf.hash("text")).collect()
    }
    assert hashes == {text: spark_hash(text) for text in texts}
    for count in (2, 5):
        keyed = spark.createDataFrame([(key,) for key in partition_keys(count)], "key string")
        placed = keyed.repartition(count, "key").withColumn("at", sf.spark_partition_id())
        assert {row["key"]: row["at"] for row in placed.collect()} == {
            key: number for number, key in enumerate(partition_keys(count))
        }


def test_given_session_is_used_and_its_missing_settings_named(spark: Any) -> None:
    """A session that lacks a setting works, with one warning that names it and says why."""
    conf = spark.sparkContext._conf
    name = "spark.python.unix.domain.socket.enabled"
    before = conf.get(name)
    conf.set(name, "false")
    try:
        with pytest.warns(UserWarning, match=rf"{re.escape(name)}=true .*delayed acks"):
            query_session(spark, 2, "/tmp/x")
    finally:
        conf.set(name, before)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session = query_session(spark, 3, "/tmp/x")
    assert session.conf.get("spark.sql.shuffle.partitions") == "3"
    assert spark.conf.get("spark.sql.shuffle.partitions") != "3"


def test_a_setting_that_spark_refuses_is_named(spark: Any) -> None:
    """In one sentence, without Java's stack; Spark looks at such values when a query begins."""
    conf = spark.sparkContext._jsc.sc().conf()
    conf.set("spark.sql.shuffle.partitions", "abc")
    try:
        with pytest.raises(ss.ConfigError, match=r"^Spark refuses a setting: .*'abc'") as refused:
            query_session(spark, 2, "/tmp/x")
    finally:
        conf.remove("spark.sql.shuffle.partitions")
    assert "spark.sql.shuffle.partitions" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_running_spark_is_used_and_left_running(spark: Any) -> None:
    """A run without a session does not start, and does not stop, what somebody else started."""
    feeder = FeederSpout("n int")
    feeder.feed([1], msg_id=1)
    with ss.submit(wired(feeder, Ack()), name="test") as run:
        wait_until(lambda: feeder.acked == [1], check=run._check)
    assert spark.range(2).count() == 2


def test_spark_connect_is_refused(absent: Callable[[str], NoReturn]) -> None:
    """A Spark Connect session is refused with the reason."""
    try:
        from pyspark.sql.connect.session import SparkSession as ConnectSession
    except ImportError as error:
        absent(f"Spark Connect's packages are not installed: {error}")
    remote = ConnectSession.__new__(ConnectSession)
    with pytest.raises(ss.ConfigError, match=r"Spark Connect.*driver itself"):
        ss.submit(wired(FeederSpout("n int"), Ack()), session=remote)


def test_something_like_spark_connect_is_refused() -> None:
    """Whatever has no Spark context of its own is refused in the same way."""

    class Remote:
        """Looks like a Connect session: no sparkContext."""

    with pytest.raises(ss.ConfigError, match="Spark Connect"):
        check_given(Remote())  # type: ignore[arg-type]


def test_a_session_with_another_python_is_refused(spark: Any, tmp_path: Path) -> None:
    """One sentence, before anything runs: else it is a trace from deep inside of Spark."""
    bare = tmp_path / "python"
    bare.write_text(
        "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'pyarrow'\" >&2; exit 1\n"
    )
    bare.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark.sparkContext, "pythonExec", str(bare))
        with pytest.raises(ss.EnvironmentFault, match=r"No module named 'pyarrow'.*PYSPARK_PYTHON"):
            ss.submit(wired(FeederSpout("n int"), Ack()), session=spark)


def test_restart_on_a_checkpoint(spark: Any, tmp_path: Path) -> None:
    """A run that was stopped goes on where acks ended; state counts every line exactly once."""
    lines = [f"line {number}" for number in range(400)]
    (tmp_path / "lines.txt").write_text("\n".join(lines))
    config = {"batch_max_messages": 50, "retry_backoff_secs": 0.05}
    seen: list[tuple[str, int]] = []
    options: dict[str, Any] = {
        "config": config,
        "checkpoint": tmp_path / "checkpoint",
        "taps": ["bolt"],
        "on_tap": lambda key, task, rows: seen.extend(rows),
    }

    def topology() -> ss.Topology:
        return wired(LinesSpout(tmp_path / "lines.txt"), CountLines(), parallelism=2)

    with running(topology(), spark, **options) as first:
        wait_until(lambda: first.statistics().acked >= 60, check=first._check)
        drained = first.stop(drain=False)
    assert drained.acked < 400
    with running(topology(), spark, **options) as second:
        assert second.wait_until_drained(PATIENCE_SECS)
        statistics = second.statistics()
    assert statistics.pending == 0
    assert drained.acked + statistics.acked == 400
    shown = Counter(line for line, _ in seen)
    assert max(shown.values()) == 1
    assert {count for _, count in seen} == {1}
    assert len(shown) >= 350  # the taps of a batch on which the first run was stopped are lost


def test_a_checkpoint_with_crc_files_goes_on_without(spark: Any, tmp_path: Path) -> None:
    """Our sessions write none of Hadoop's ``.crc`` files; a checkpoint with some goes on."""
    lines = tmp_path / "lines.txt"
    checkpoint = tmp_path / "checkpoint"

    def run(text: str) -> set[str]:
        before = set(checkpoint.rglob(".*.crc"))
        lines.write_text(text)
        topology = wired(LinesSpout(lines), CountLines())
        with running(topology, spark, checkpoint=checkpoint) as handle:
            assert handle.wait_until_drained(PATIENCE_SECS)
            assert handle.statistics().acked == 10
        return {path.parent.name for path in set(checkpoint.rglob(".*.crc")) - before}

    configuration = spark._jsparkSession.sparkContext().hadoopConfiguration()
    spark._jvm.org.apache.hadoop.fs.FileSystem.getLocal(configuration).setWriteChecksum(True)
    try:
        assert {"offsets", "commits"} <= run("".join(f"line {n}\n" for n in range(10)))
    finally:
        write_no_crc_files(spark)
    assert run("".join(f"line {n}\n" for n in range(20))) == set()


def test_checkpoint_of_another_topology_is_refused(spark: Any, tmp_path: Path) -> None:
    """A checkpoint is bound to its topology: another one is refused before anything runs."""
    feeder = FeederSpout("n int")
    with running(wired(feeder, Ack()), spark, checkpoint=tmp_path):
        pass
    with pytest.raises(ss.CheckpointError, match="belongs to the topology 'test'"):
        ss.submit(wired(feeder, Ack()), name="other", session=spark, checkpoint=tmp_path)


def test_waiting_and_stopping(spark: Any) -> None:
    """wait_until_drained gives up in time; stop without drain leaves what is pending."""
    feeder = FeederSpout("n int")
    with running(wired(feeder, AckOdd()), spark) as run:
        feeder.feed([1], msg_id=1)
        feeder.feed([2], msg_id=2)
        wait_until(lambda: feeder.acked == [1], check=run._check)
        assert run.wait_until_drained(0.2) is False
        assert run.await_termination(0.1) is False
        with ThreadPoolExecutor() as pool:  # whoever else waits hears of the stop
            waiting = pool.submit(run.wait_until_drained)
            statistics = run.stop(drain=False)
            assert waiting.result(PATIENCE_SECS) is False
        assert (statistics.acked, statistics.pending) == (1, 1)
        assert run.await_termination(0.1) is True
        assert run.stop() == statistics
    assert feeder.failed == []


def test_stop_drains(spark: Any) -> None:
    """Stop finishes what was emitted, also when its spout would go on for ever."""
    feeder = FeederSpout("n int")
    with running(wired(feeder, Ack()), spark) as run:
        for number in range(50):
            feeder.feed([number], msg_id=number)
        wait_until(lambda: run.statistics().emitted > 0, check=run._check)
        statistics = run.stop()
        assert statistics.pending == 0
        assert len(feeder.acked) == statistics.acked


def test_failing_spout_is_an_error_and_does_not_hang(spark: Any) -> None:
    """What next_tuple raises comes out where the run is waited for, with its place."""
    named = (
        r"spout 'spout' failed: \w+: the queue is on fire "
        r"\(File .*test_run.py., line \d+, in next_tuple\)"
    )
    with running(wired(Breaking(), Ack()), spark) as run:
        with pytest.raises(ss.SparkstormError, match=named):
            run.wait_until_drained(PATIENCE_SECS)
        with pytest.raises(ss.SparkstormError, match=named):
            run.await_termination(PATIENCE_SECS)


def test_a_source_may_have_nothing_for_a_while(spark: Any) -> None:
    """Spark runs its first batch whatever its end is: a quiet first second once ended the run."""
    feeder = FeederSpout("n int")
    with ss.submit(wired(feeder, Ack()), session=spark) as run:
        wait_until(lambda: run.statistics().batches > 0, check=run._check)
        feeder.feed([1], msg_id=1)
        wait_until(lambda: feeder.acked == [1], check=run._check)


def test_a_topology_may_be_large(spark: Any) -> None:
    """PySpark broadcasts functions of more than a megabyte, which stateful stages cannot read."""
    feeder = FeederSpout("n int")
    with ss.submit(wired(feeder, LookUp(bytes(3_000_000))), session=spark) as run:
        feeder.feed([1], msg_id=1)
        wait_until(lambda: feeder.acked == [1], check=run._check)
