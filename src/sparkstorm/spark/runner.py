"""Submit a topology to Spark: the parts of a run, in the order of their starts.

Read :func:`submit` first. Each step stands for a module without knowledge of other steps, and
``stop`` undoes the steps in reverse. Users get a handle, :class:`~sparkstorm.spark.run.Run`.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial

from pyspark.sql import SparkSession

from sparkstorm.batches.assembly import make_coordinator
from sparkstorm.batches.events.taps import Tap
from sparkstorm.checkpoint.fitting_plan import check_ahead, plan_on_checkpoint
from sparkstorm.checkpoint.heartbeat import Heartbeat
from sparkstorm.checkpoint.manifest import Manifest
from sparkstorm.checkpoint.scratch import remove_abandoned
from sparkstorm.checkpoint.spark_messages import SparkMessages
from sparkstorm.config import Config
from sparkstorm.control.publishing import Published, published
from sparkstorm.dead_letters.origin import Origin
from sparkstorm.garbage import rare_collections
from sparkstorm.planning.advice import advice_on
from sparkstorm.planning.passes import check_name
from sparkstorm.planning.plan import Plan
from sparkstorm.spark.driver.failures.restarts import Restarts
from sparkstorm.spark.driver.jvm import Jvm, stop_session
from sparkstorm.spark.driver.kept_processes import end_kept_processes
from sparkstorm.spark.driver.query import Query
from sparkstorm.spark.driver.self_test import check_spark
from sparkstorm.spark.driver.session import (
    check_given,
    make_session,
    running_session,
    spark_parallelism,
)
from sparkstorm.spark.driver.shipping import offer_script_folder, ship
from sparkstorm.spark.driver.source.server import PlanServer
from sparkstorm.spark.driver.spout_threads import SpoutThreads
from sparkstorm.spark.driver.storage.run_checkpoint import RunCheckpoint, take_checkpoint
from sparkstorm.spark.driver.supervisor import Supervisor
from sparkstorm.spark.driver.warm_up import warm_workers
from sparkstorm.spark.run import FirstFault, Run
from sparkstorm.telemetry import opened_outlet
from sparkstorm.texts.logs import logger_of
from sparkstorm.topology.graph import Topology

__all__ = ["submit"]

_logger = logger_of(__name__)


def _nothing(step: str) -> None: ...


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
    on_step: Callable[[str], None] = _nothing,
    origin: Origin | None = None,
) -> Run:
    """Start a topology on Spark and return the handle of its run.

    Args:
        topology: what :meth:`TopologyBuilder.create_topology` returned.
        name: the topology's name.
        config: the settings, or a mapping of keys as people write them.
        session: a Spark session to run on. If None, the session of this process is used; if there
            is none, a session is started, and stopped with the run. Messages of a started Spark go
            to a file, which a failed run names.
        master: where a started session runs.
        checkpoint: the folder that holds progress and state over restarts. If None, a temporary
            folder that goes with the run.
        taps: components whose emitted tuples are handed to ``on_tap``.
        on_tap: called with (stream, task, tuples) for each committed batch. An error that it
            raises is logged, and the run goes on.
        on_step: called with the name of each step of the start, which takes seconds in all.
        origin: how ``sparkstorm debug`` finds the topology; the command line gives it.

    Raises:
        SparkstormError: a setting, the environment or the checkpoint does not fit; nothing runs.
    """
    check_name(name)
    offer_script_folder()
    remove_abandoned()
    settings = config if isinstance(config, Config) else Config.parse(config or {})
    taps = list(taps)
    with ExitStack() as parts:
        fault = FirstFault()
        # 1. Spark, but first whatever can be found wrong without it: Spark takes seconds to start
        session = session or running_session()
        if session is None:
            ahead = None if checkpoint is None else os.fspath(checkpoint)
            check_ahead(topology, ahead, name=name, config=settings, taps=taps)
            on_step("starting Spark")
            messages = parts.enter_context(SparkMessages())
            with messages.opened() as output:
                session = make_session(name, master, output=output)
            parts.callback(stop_session, session)
            fault = FirstFault(messages.explain)
        else:
            check_given(session)
        on_step("checking the topology and its checkpoint")
        warm_workers(session)
        parts.enter_context(rare_collections())
        parts.enter_context(Jvm(session).told_if_gone())
        # 2. the checkpoint: no other driver may write to it from now on
        place = parts.enter_context(take_checkpoint(checkpoint, session, name, settings))
        # 3. the plan: the topology, on what the checkpoint was made with
        plan = plan_on_checkpoint(
            topology,
            place.files,
            place.where,
            name=name,
            config=settings,
            partitions=spark_parallelism(session),
            taps=taps,
        )
        on_step("checking Spark")
        check_spark(session, plan)
        # 4. the driver's parts, the spouts and the query
        on_step("opening the spouts and starting the query")
        run = _start(plan, session, place, parts, fault, on_tap=on_tap, origin=origin)
        run.own(parts)
        return run


def _start(
    plan: Plan,
    session: SparkSession,
    place: RunCheckpoint,
    parts: ExitStack,
    fault: FirstFault,
    *,
    on_tap: Tap | None,
    origin: Origin | None,
) -> Run:
    """Start all parts of a run; ``parts`` stops them in reverse."""
    if plan.committers and not place.lasts:
        _logger.warning(
            "the topology has committers and no checkpoint: each start applies everything "
            "anew. Give a checkpoint folder to go on instead"
        )
    for advice in advice_on(plan):
        _logger.warning("%s", advice)
    spouts = SpoutThreads(fault.report)
    dead_letters = place.dead_letters(plan)
    coordinator = make_coordinator(
        plan,
        place.files,
        dead_letters.clock,
        run=place.lease.run,
        fence=place.lease,
        dead_letters=dead_letters,
        on_tap=on_tap,
    )
    parts.enter_context(opened_outlet(plan.name, coordinator.observe))
    # 1. the lease: renewed from now on
    heartbeat = Heartbeat(place.lease, fault.report)
    heartbeat.start()
    parts.callback(heartbeat.stop)
    # 2. the coordinator takes up what the last driver left
    coordinator.open(place.engine_log(session))
    parts.callback(lambda: coordinator.close(clean=not fault))
    # 3. the spouts: a source that cannot be reached must fail before anything runs
    for number, task in coordinator.hosted.items():
        parts.callback(task.shut)
        task.open()
        spouts.add(task, partial(coordinator.intake_limit, number))
    # 4. the checkpoint is this topology's from now on: nothing that fails above may claim it
    Manifest.of(plan).write(place.files)
    Origin.write(origin, dead_letters.store)
    # 5. the threads of the spouts: they emit while the query starts, which takes seconds
    parts.callback(end_kept_processes, session, plan, place.lease.run)
    spouts.start()
    parts.callback(spouts.stop)
    # 6. the query, and whoever starts it again
    ship(session)
    server = PlanServer(coordinator)
    start_query = partial(Query, plan, session, place.where, coordinator, server)
    restarts = Restarts(plan.config)
    query = Supervisor(start_query, server, Jvm(session), restarts, fault.report)
    query.start()
    parts.callback(query.stop)
    parts.callback(server.stop)  # first: a query that waits for a batch does not stop
    run = Run(plan, coordinator, server, spouts, fault, letters_at=dead_letters.where)
    # 7. the control: other processes see and steer the run from now on
    parts.enter_context(
        published(
            Published(
                plan=plan,
                coordinator=coordinator,
                run=run,
                store=dead_letters.store,
                clock=dead_letters.clock,
                holder=place.lease.me,
                master=session.sparkContext.master or "",
                checkpoint=place.where if place.lasts else "",
                origin=origin,
            )
        )
    )
    return run
