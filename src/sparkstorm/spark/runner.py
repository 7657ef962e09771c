"""Submit a topology: the life of a run as a table of contents."""

import atexit
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from sparkstorm.batches.assembly import make_coordinator
from sparkstorm.batches.coordinator import Coordinator
from sparkstorm.batches.events.taps import Tap
from sparkstorm.checkpoint.files import CheckpointFiles, LocalFiles
from sparkstorm.checkpoint.fitting_plan import check_ahead, plan_on_checkpoint
from sparkstorm.checkpoint.heartbeat import Heartbeat
from sparkstorm.checkpoint.holder import Holder
from sparkstorm.checkpoint.lease import Lease
from sparkstorm.checkpoint.manifest import Manifest
from sparkstorm.checkpoint.scratch import make_folder, remove_abandoned
from sparkstorm.clock import SystemClock
from sparkstorm.config import Config
from sparkstorm.dead_letters.office import DeadLetterOffice
from sparkstorm.dead_letters.places import default_folder
from sparkstorm.dead_letters.store import LetterStore
from sparkstorm.errors import SparkLostError, SparkstormError
from sparkstorm.metrics import Statistics
from sparkstorm.planning.passes import check_name
from sparkstorm.planning.plan import Plan
from sparkstorm.sources.hosted.thread import HostedThread
from sparkstorm.spark.driver.jvm import Jvm, stop_session
from sparkstorm.spark.driver.kept_processes import end_kept_processes
from sparkstorm.spark.driver.query import Query
from sparkstorm.spark.driver.restarts import Restarts
from sparkstorm.spark.driver.self_test import check_internals
from sparkstorm.spark.driver.server import PlanServer
from sparkstorm.spark.driver.session import (
    check_conf,
    check_given,
    make_session,
    running_session,
    spark_parallelism,
)
from sparkstorm.spark.driver.shipping import offer_script_folder, ship
from sparkstorm.spark.driver.storage.checkpoint import open_files, open_spark_files
from sparkstorm.spark.driver.storage.spark_log import read_spark_log
from sparkstorm.spark.driver.supervisor import Supervisor
from sparkstorm.spark.link import LinkServer
from sparkstorm.tasks.report import LogLine
from sparkstorm.texts.logs import logger_of
from sparkstorm.topology.graph import Topology

__all__ = ["Run", "submit"]

_LOOK_SECS = 0.02

_GOES_ON = (
    "Nothing that was acked is lost: a restart on the same checkpoint goes on, and what was not "
    "acked is processed again"
)

_logger = logger_of(__name__)


def submit(
    topology: Topology,
    *,
    name: str = "topology",
    config: Config | Mapping[str, object] | None = None,
    session: SparkSession | None = None,
    master: str = "local[*]",
    checkpoint: str | os.PathLike[str] | None = None,
    taps: Iterable[str] = (),
    on_tap: Tap | None = None,
    on_log: Callable[[LogLine], None] | None = None,
) -> "Run":
    """Start a topology on Spark and return the handle of its run.

    Args:
        topology: what :meth:`TopologyBuilder.create_topology` returned.
        name: the topology's name.
        config: the settings, or a mapping of keys as people write them.
        session: a Spark session to run on; if None, the one that this process has, or else one
            that is started, and stopped with the run.
        master: where a started session runs.
        checkpoint: the folder that holds progress and state over restarts; if None, a temporary
            one that goes with the run.
        taps: components whose emitted tuples are handed to ``on_tap``.
        on_tap: called with (stream, task, tuples) for each committed batch; what it raises is
            logged, and the run goes on.
        on_log: called for each line that a component prints or logs; default: Python's logging.

    Raises:
        SparkstormError: a setting, the environment or the checkpoint does not fit; nothing runs.
    """
    check_name(name)
    offer_script_folder()
    remove_abandoned()
    settings = config if isinstance(config, Config) else Config.parse(config or {})
    taps = list(taps)
    with ExitStack() as stack:
        session = session or running_session()
        if session is None:
            ahead = None if checkpoint is None else os.fspath(checkpoint)
            check_ahead(topology, ahead, name=name, config=settings, taps=taps)
            session = make_session(name, master)
            stack.callback(stop_session, session)
        else:
            check_given(session)
        stack.enter_context(Jvm(session).told_if_gone())
        keep_letters_there = checkpoint is not None
        if checkpoint is None:
            checkpoint = make_folder(name)
            stack.callback(shutil.rmtree, checkpoint, ignore_errors=True)
        where = os.fspath(checkpoint)
        files = open_files(where, session, fsync=settings.checkpoint_fsync)
        lease = _take_lease(files, settings)
        stack.callback(_release, lease)
        plan = plan_on_checkpoint(
            topology,
            files,
            where,
            name=name,
            config=settings,
            partitions=spark_parallelism(session),
            taps=taps,
        )
        check_internals(session, plan)
        check_conf(session.sparkContext.getConf(), plan)
        office = _office(plan, where if keep_letters_there else None, files, lease.run)
        if plan.committers and not keep_letters_there:
            _logger.warning(
                "the topology has committers and no checkpoint: each start applies everything "
                "anew. Give a checkpoint folder to go on instead"
            )
        run = Run(plan, session, where, files, lease, office, on_tap=on_tap, on_log=on_log)
        run.start(stack)
        return run


@final
class Run:
    """A running topology. Returned by :func:`submit`; also a context manager that stops it."""

    def __init__(
        self,
        plan: Plan,
        session: SparkSession,
        checkpoint: str,
        files: CheckpointFiles,
        lease: Lease,
        office: DeadLetterOffice,
        *,
        on_tap: Tap | None,
        on_log: Callable[[LogLine], None] | None,
    ) -> None:
        self.plan = plan
        self._session = session
        self._checkpoint = checkpoint
        self._files = files
        self.letters_at = office.where
        self._lease = lease
        self._threads: dict[int, HostedThread] = {}
        self._coordinator = make_coordinator(
            plan,
            files,
            office.clock,
            run=lease.run,
            fence=lease,
            office=office,
            on_tap=on_tap,
            on_log=on_log,
        )
        self._server = PlanServer(self._coordinator)
        self._cleanup = ExitStack()
        self._stopped = threading.Event()
        self._stopping = threading.Lock()
        self._broken: SparkstormError | None = None

    def start(self, stack: ExitStack) -> None:
        """Start in this order; ``stop`` undoes it in reverse. Called by :func:`submit`."""
        # 1. the lease is kept from now on
        heartbeat = Heartbeat(self._lease, self._break)
        heartbeat.start()
        stack.callback(heartbeat.stop)
        # 2. the spouts: a source that is away must fail before anything runs
        spark_files = open_spark_files(self._checkpoint, self._session)
        self._coordinator.open(read_spark_log(spark_files))
        stack.callback(self._close_coordinator)
        for number, task in self._coordinator.hosted.items():
            stack.callback(task.shut)
            task.open()
            limit = _limiter(self._coordinator, number)
            self._threads[number] = HostedThread(task, limit, self._break)
        # 3. the checkpoint is this topology's from now on
        Manifest.of(self.plan).write(self._files)
        # 4. the link for the reader process
        stack.callback(end_kept_processes, self._session, self.plan, self._lease.run)
        link = LinkServer(self._server.handle)
        stack.callback(link.close)
        # 5. the query
        query = self._supervise(link)
        query.start()
        stack.callback(query.stop)
        # 6. the spouts' threads
        for thread in self._threads.values():
            thread.start()
        stack.callback(self._stop_threads)
        self._cleanup = stack.pop_all()
        atexit.register(self._at_exit)

    def wait_until_drained(self, timeout: float | None = None) -> bool:
        """Wait until the spouts have nothing more and nothing is pending.

        Returns False if that takes longer than ``timeout`` seconds, or if the run is stopped by
        another thread before.

        Raises:
            SparkstormError: the run failed meanwhile.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._drained():
            self._check()
            if deadline is not None and time.monotonic() > deadline:
                return False
            if self._stopped.wait(_LOOK_SECS):
                return self._drained()
        self._check()
        return True

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the run is stopped, or has failed.

        Raises:
            SparkstormError: the run failed.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._stopped.wait(_LOOK_SECS):
            self._check()
            if deadline is not None and time.monotonic() > deadline:
                return False
        return True

    def statistics(self) -> Statistics:
        """How the topology stands now."""
        return self._coordinator.statistics()

    def activate(self) -> None:
        """Let hosted spouts emit again."""
        for thread in self._threads.values():
            thread.set_active(True)

    def deactivate(self) -> None:
        """Let hosted spouts emit nothing; what is pending goes on."""
        for thread in self._threads.values():
            thread.set_active(False)

    def stop(self, drain: bool = True, timeout: float = 60.0) -> Statistics:
        """Stop the run; with ``drain``, first finish what is pending (up to ``timeout`` seconds).

        Returns the last statistics. A second call does nothing.
        """
        if self._stopped.is_set():
            return self.statistics()
        atexit.unregister(self._at_exit)
        self._coordinator.close_intake()
        self.deactivate()
        try:
            if drain and self._broken is None:
                self.wait_until_drained(timeout)
        finally:
            self._server.stopping = True
            with self._stopping:
                self._stopped.set()
                self._cleanup.close()
        return self.statistics()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.stop(drain=kind is None)

    def __repr__(self) -> str:
        return f"Run({self.plan.name}: {self._coordinator!r})"

    def _supervise(self, link: LinkServer) -> Supervisor:
        ship(self._session)

        def start_query() -> Query:
            return Query(self.plan, self._session, self._checkpoint, self._coordinator, link)

        jvm, restarts = Jvm(self._session), Restarts(self.plan.config)
        return Supervisor(start_query, self._server, jvm, restarts, self._break)

    def _drained(self) -> bool:
        return (
            all(thread.idle for thread in self._threads.values())
            and self._coordinator.drained
            and all(thread.idle for thread in self._threads.values())
        )

    def _check(self) -> None:
        """Raise what made the run fail, as the error of whoever is at fault."""
        if self._broken is None:
            return
        if isinstance(self._broken, SparkLostError):
            raise SparkLostError(f"{self._broken}. {_GOES_ON}") from self._broken
        raise self._broken

    def _at_exit(self) -> None:
        self.stop(drain=False)

    def _break(self, error: SparkstormError) -> None:
        if self._broken is None:  # what came first is the cause of the rest
            self._broken = error

    def _close_coordinator(self) -> None:
        self._coordinator.close(clean=self._broken is None)

    def _stop_threads(self) -> None:
        for thread in self._threads.values():
            thread.stop()
        for thread in self._threads.values():
            if thread is not threading.current_thread():
                thread.join(timeout=10)


def _limiter(coordinator: Coordinator, task: int) -> Callable[[], int]:
    return lambda: coordinator.intake_limit(task)


def _office(
    plan: Plan, checkpoint: str | None, files: CheckpointFiles, run: str
) -> DeadLetterOffice:
    """Dead letters live beside the checkpoint, or in a folder that outlives a temporary one."""
    store, where = LetterStore(files), f"--checkpoint {checkpoint}"
    if checkpoint is None:
        folder, fsync = plan.config.dead_letter_folder, plan.config.checkpoint_fsync
        place = LocalFiles(Path(folder) if folder else default_folder(), fsync=fsync)
        store = LetterStore(place, plan.name)
        where = f"--topology {plan.name}" + (f" --folder {folder}" if folder else "")
    return DeadLetterOffice(plan.name, store, SystemClock(), run=run, where=where)


def _take_lease(files: CheckpointFiles, config: Config) -> Lease:
    clock = SystemClock()
    holder = Holder.here(secrets.token_hex(4), clock.wall())
    lease = Lease(files, clock, holder, config.lease_timeout_secs)
    lease.acquire()
    return lease


def _release(lease: Lease) -> None:
    try:
        lease.release()
    except (OSError, Py4JError) as error:  # the checkpoint is out of reach, perhaps with the JVM
        _logger.warning("the lease of the checkpoint could not be released: %s", error)
