"""The life of a run on Spark: one at a time, its query restarted, its end told with the cause."""

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import pyspark.cloudpickle
import pytest

import sparkstorm as ss
from sparkstorm.checkpoint.holder import Holder
from sparkstorm.checkpoint.lease import Lease
from sparkstorm.clock import SystemClock
from sparkstorm.errors import BatchError, SparkLostError
from sparkstorm.spark.driver.storage.checkpoint import HadoopFiles, open_files
from sparkstorm.spark.driver.storage.stores import Store
from sparkstorm.spouts import IteratorSpout
from sparkstorm.testing import PATIENCE_SECS, FeederSpout, wait_until

pytestmark = pytest.mark.spark


class Pass(ss.BasicBolt):
    """Passes numbers on."""

    outputs = "n long"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([tup["n"]])


class Remember(ss.StatefulBolt):
    """Keeps the last number."""

    def execute(self, tup: ss.Tuple) -> None:
        self.state.put("last", tup["n"])
        self.collector.ack(tup)


class Broken(ss.PartitionedSpout):
    """Raises when it is asked for splits."""

    outputs = "n long"

    def plan(self, limit: int) -> list[ss.Split]:
        raise RuntimeError("the log has a hole")

    def read(self, split: ss.Split) -> list[tuple[int]]:
        return []


@pytest.fixture(autouse=True)
def _ship_the_classes_of_this_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Send the classes of this module to the workers, which cannot import it.

    Spark pickles data sources with a cloudpickle of its own.
    """
    module: ModuleType = request.module
    for pickler in (cloudpickle, pyspark.cloudpickle):
        pickler.register_pickle_by_value(module)
    yield
    for pickler in (cloudpickle, pyspark.cloudpickle):
        pickler.unregister_pickle_by_value(module)


@contextmanager
def running(
    spout: Any, session: Any, *, bolt: ss.Bolt | None = None, **options: Any
) -> Iterator[Any]:
    builder = ss.TopologyBuilder()
    builder.set_spout("spout", spout)
    builder.set_bolt("bolt", bolt or Pass(), parallelism=2).shuffle_grouping("spout")
    run = ss.submit(builder.create_topology(), name="life", session=session, **options)
    try:
        yield run
    finally:
        run.stop(drain=False)


@contextmanager
def out_of_place(folder: Path) -> Iterator[None]:
    """A file stands where the folder was, until the end of the block."""
    away = folder.rename(folder.parents[1] / "away")
    folder.write_text("this is not a folder")
    yield
    folder.unlink()
    away.rename(folder)


def processes_of_sources() -> list[int]:
    """The processes that Spark starts for a data source in Python, of this process's JVM."""
    return _of_this_jvm(b"python_streaming_source_runner") + _of_this_jvm(b"data_source")


def stop_queries(spark: Any) -> None:
    """Stop all queries of this process's JVM, as anybody with a handle of them can."""
    for query in spark._jsparkSession.sharedState().activeStreamingQueries().values():
        query.stop()


def daemons_and_workers() -> list[int]:
    """Spark's Python daemons, and the workers that were forked from them."""
    return _of_this_jvm(b"daemon\0pyspark.worker")


def forget_daemons(spark: Any) -> None:
    """Leave Spark as a task does that is cancelled while a daemon that was killed is cleaned up.

    By fields alone: py4j cannot call methods of a class that names others which are not there.
    """
    env = _field(spark, "SparkEnv$", "env").get(_field(spark, "SparkEnv$", "MODULE$").get(None))
    factories = _field(spark, "SparkEnv", "pythonWorkers").get(env).values().toSeq()
    for index in range(factories.size()):
        path = _field(spark, "api.python.PythonWorkerFactory", "daemonSockPath")
        path.set(factories.apply(index), None)


def _field(spark: Any, owner: str, name: str) -> Any:
    found = spark._jvm.java.lang.Class.forName(f"org.apache.spark.{owner}").getDeclaredField(name)
    found.setAccessible(True)
    return found


def _of_this_jvm(part: bytes) -> list[int]:
    parents, found = {}, []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
                command = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            parents[int(folder.name)] = int(stat[1])
            if part in command:
                found.append(int(folder.name))
    return [pid for pid in found if os.getpid() in _ancestors(pid, parents)]


def _ancestors(pid: int, parents: dict[int, int]) -> Iterator[int]:
    while pid in parents:
        pid = parents[pid]
        yield pid


class TestHadoopFiles:
    """Through Hadoop's local file system."""

    @pytest.mark.parametrize("store", [s for s in Store if s is not Store.CONDITIONAL])
    def test_files_are_written_created_listed_and_deleted(
        self, spark: Any, tmp_path: Path, store: Store
    ) -> None:
        files = HadoopFiles(spark, f"file://{tmp_path}/checkpoint", store=store)
        assert files.read("plans/1") is None
        assert files.names("plans") == []
        files.write("plans/1", b"old")
        files.write("plans/1", bytes(range(256)) * 100)
        assert files.read("plans/1") == bytes(range(256)) * 100
        assert files.create("lease/1", b"mine")
        assert not files.create("lease/1", b"yours")
        assert files.read("lease/1") == b"mine"
        files.write("plans/0", b"")
        assert files.names("plans") == ["0", "1"]
        files.delete("plans/1")
        files.delete("plans/1")
        assert files.names("plans") == ["0"]
        assert files.read("plans/0") == b""

    @pytest.mark.parametrize("steps", [2, 3, 4])
    def test_a_file_outlives_a_crash_in_its_replacement(
        self, spark: Any, tmp_path: Path, steps: int
    ) -> None:
        """Where it takes several steps: as it was, or as it was to be, after each of them."""
        files = HadoopFiles(spark, f"file://{tmp_path}", store=Store.RENAMES_TO_NEW)
        files.write("plans/1", b"new")
        (tmp_path / "plans/1").rename(tmp_path / "plans/1.whole" if steps > 2 else tmp_path / "x")
        if steps < 4:
            (tmp_path / "plans/1").write_bytes(b"old")
        assert files.names("plans") == ["1"]
        assert files.read("plans/1") == (b"new" if steps == 4 else b"old")
        files.write("plans/1", b"newest")
        assert files.read("plans/1") == b"newest"
        files.delete("plans/1")
        assert files.read("plans/1") is None

    def test_a_store_that_keeps_no_two_drivers_apart_is_refused(self, spark: Any) -> None:
        """One of Hadoop's own that looks first and then writes; all ways on are named."""
        words = r"on http://, as it is set up, .*hdfs://; s3a://.*gs://; or abfss://"
        with pytest.raises(ss.CheckpointError, match=words):
            open_files("http://localhost/checkpoint", spark)

    def test_a_store_that_hadoop_cannot_open_is_named(self, spark: Any) -> None:
        with pytest.raises(ss.CheckpointError, match=r"nosuch://a/b cannot be opened.*jars"):
            open_files("nosuch://a/b", spark)

    def test_a_lease_is_held_there(self, spark: Any, tmp_path: Path) -> None:
        files = HadoopFiles(spark, f"file://{tmp_path}", store=Store.RENAMES)
        clock = SystemClock()
        first = Lease(files, clock, Holder.here("one", clock.wall()), 30.0)
        second = Lease(files, clock, Holder.here("two", clock.wall()), 30.0)
        assert first.try_acquire()
        with pytest.raises(ss.CheckpointError, match="run one on host"):
            second.try_acquire()
        first.renew()
        first.release()
        assert second.try_acquire()
        with pytest.raises(ss.CheckpointError, match=r"\(one\).*taken over.*run two"):
            first.check()


def test_a_second_run_on_the_checkpoint_is_refused(spark: Any, tmp_path: Path) -> None:
    """It is told who is there; when that run has stopped, the checkpoint is free at once."""
    feeder = FeederSpout("n long")
    with running(feeder, spark, checkpoint=tmp_path):
        who = rf"in use by run [0-9a-f]{{8}} on host .*, pid {os.getpid()}, since 20"
        with (
            pytest.raises(ss.CheckpointError, match=who),
            running(feeder, spark, checkpoint=tmp_path),
        ):
            pass
        feeder.feed([1], msg_id=1)
        wait_until(lambda: feeder.acked == [1])
    with running(feeder, spark, checkpoint=tmp_path):
        pass


def test_the_query_outlives_its_stop_by_somebody_else(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Stopped twice in the middle: all messages are acked, none counted twice."""
    config = {"batch_max_messages": 100, "query_restart_backoff_secs": 0.05}
    spout = IteratorSpout(range(3000), "n long")
    with running(spout, spark, config=config) as run:
        for acked in (300, 1200):
            wait_until(lambda acked=acked: run.statistics().acked >= acked)  # type: ignore[misc]
            stop_queries(spark)
        assert run.wait_until_drained(PATIENCE_SECS)
        statistics = run.statistics()
    assert (statistics.emitted, statistics.acked, statistics.failed) == (3000, 3000, 0)
    assert statistics.component("bolt").executed == 3000
    restarts = [r.message for r in caplog.records if "is started again in" in r.message]
    assert len(restarts) == 2
    assert "restart 1" in restarts[0]


def test_spark_starts_no_process_to_plan_batches(spark: Any) -> None:
    """Its JVM asks the driver's own Python."""
    feeder = FeederSpout("n long")
    with running(feeder, spark):
        feeder.feed([1], msg_id=1)
        wait_until(lambda: feeder.acked == [1])
        assert daemons_and_workers()
        assert processes_of_sources() == []


def test_a_daemon_that_died_at_the_wrong_moment_is_replaced(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark believes that it runs, and fails for ever: nothing but other workers help."""
    config = {"query_restart_backoff_secs": 0.05}
    feeder = FeederSpout("n long")
    with running(feeder, spark, config=config) as run:
        feeder.feed([1], msg_id=1)
        wait_until(lambda: feeder.acked == [1])
        forget_daemons(spark)
        for pid in daemons_and_workers():
            os.kill(pid, 9)
        feeder.feed([2], msg_id=2)
        wait_until(lambda: feeder.acked == [1, 2])
        assert run.statistics().failed == 0
    assert "Spark goes on to take it for running" in caplog.text
    # idle workers that are found dead may fail a job, which is then run again; nothing is blamed
    assert not re.search(r"[1-9]\d* (found )?at fault", caplog.text)
    with running(IteratorSpout(range(10), "n long"), spark, config=config) as run:
        assert run.wait_until_drained(PATIENCE_SECS)


def test_a_machine_that_cannot_start_python_for_too_long_ends_the_run(spark: Any) -> None:
    """Without patience the first time is one too many; the next run goes on."""
    config = {"query_restart_patience_secs": 0}
    feeder = FeederSpout("n long")
    with running(feeder, spark, config=config) as run:
        feeder.feed([1], msg_id=1)
        wait_until(lambda: feeder.acked == [1])
        forget_daemons(spark)
        for pid in daemons_and_workers():
            os.kill(pid, 9)
        feeder.feed([2], msg_id=2)
        with pytest.raises(SparkLostError, match=r"no Python workers for 0 s .*Nothing that"):
            run.await_termination(PATIENCE_SECS)
    with running(IteratorSpout(range(10), "n long"), spark) as run:
        assert run.wait_until_drained(PATIENCE_SECS)


def test_a_cause_that_persists_ends_the_run(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """After the limit of restarts the run fails; its message names the cause."""
    feeder = FeederSpout("n long")
    config = {"query_max_restarts": 2, "query_restart_backoff_secs": 0.05}
    with running(feeder, spark, checkpoint=tmp_path, config=config) as run:
        feeder.feed([1], msg_id=1)
        wait_until(lambda: feeder.acked == [1])
        with out_of_place(tmp_path / "spark" / "commits"):
            feeder.feed([2], msg_id=2)
            with pytest.raises(BatchError, match=r"after 2 restarts.*spark/commits"):
                run.await_termination(PATIENCE_SECS)
    assert len([r for r in caplog.records if "is started again in" in r.message]) == 2
    feeder.feed([2], msg_id=2)  # as its source would
    with running(feeder, spark, checkpoint=tmp_path):
        wait_until(lambda: feeder.acked == [1, 2])


def test_no_message_is_blamed_for_state_that_cannot_be_kept(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The query is started again until the place of the state is back; nothing has failed."""
    feeder = FeederSpout("n long")
    config = {"query_max_restarts": 100, "query_restart_backoff_secs": 0.05}
    with running(feeder, spark, bolt=Remember(), checkpoint=tmp_path, config=config) as run:
        feeder.feed([1], msg_id=1)
        wait_until(lambda: feeder.acked == [1])
        with out_of_place(tmp_path / "spark" / "state"):
            feeder.feed([2], msg_id=2)
            wait_until(
                lambda: "Spark cannot keep the state: ParentNotDirectory" in caplog.text,
            )
        wait_until(lambda: feeder.acked == [1, 2])
        assert run.statistics().failed == 0
    # idle workers that are found dead may fail a job, which is then run again; nothing is blamed
    assert not re.search(r"[1-9]\d* (found )?at fault", caplog.text)


def test_a_fault_of_the_topology_is_not_retried(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """What a partitioned spout raises ends the run at once, and is named."""
    with (
        running(Broken(), spark) as run,
        pytest.raises(ss.ComponentError, match=r"'spout' raised in plan: .*the log has a hole"),
    ):
        run.await_termination(PATIENCE_SECS)
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []
