"""``sparkstorm run``: load, check, start Spark, watch, drain, sum up."""

import atexit
import shutil
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, final

from sparkstorm.checkpoint.fitting_plan import check_ahead
from sparkstorm.checkpoint.scratch import make_folder
from sparkstorm.checkpoint.spark_messages import SparkMessages
from sparkstorm.cli.edge import Code
from sparkstorm.cli.interrupts import Interrupts
from sparkstorm.cli.loading import Loaded, load, offer_python_files
from sparkstorm.cli.screen import Screen, listening
from sparkstorm.cli.settings import python_files, run_settings
from sparkstorm.cli.summary import summary_facts, undone
from sparkstorm.cli.terminal import leave_unread, write_json
from sparkstorm.cli.ui.own_page import check_extra, own_page
from sparkstorm.config import Config
from sparkstorm.dead_letters.letter_queue import find_sink
from sparkstorm.errors import BatchError, EnvironmentFault, SparkLostError, SparkstormError
from sparkstorm.metrics import Statistics

__all__ = ["RunOptions", "run_topology"]

_LOOK_SECS = 0.2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of the command line."""

    target: str
    args: Sequence[str] = ()
    master: str = "local[*]"
    name: str | None = None
    settings: Sequence[str] = ()
    checkpoint: str | None = None
    available_now: bool = False
    taps: Sequence[str] = ()
    verbose: bool = False
    as_json: bool = False
    drain_secs: float = 60.0
    page: bool = False
    page_port: int = 8642
    spark: Mapping[str, str] = field(default_factory=dict)


def run_topology(options: RunOptions) -> Code:
    """Run a topology until it is drained or stopped.

    1. check everything that can be wrong without Spark
    2. start Spark, with its messages led to a file
    3. run the topology until it is done or asked to stop, then drain
    4. print a summary of the end
    """
    with ExitStack() as stack:
        # First of all: SIGTERM means nothing to a container's first process that does not heed it.
        interrupts = stack.enter_context(Interrupts())
        offer_python_files(python_files(options.spark))
        loaded = load(options.target, options.args)
        config = run_settings(options.settings, loaded.settings, checkpoint=options.checkpoint)
        name = loaded.name if options.name is None else options.name
        _check(name, loaded, config, options)
        screen = Screen(loaded.topology)
        stack.enter_context(listening(screen, verbose=options.verbose))
        stack.enter_context(screen.live())
        log = stack.enter_context(SparkMessages(shown=options.verbose))
        session = _start_spark(name, options, log, screen, loaded)
        stack.callback(_stop_spark, session)
        try:
            end = _watch(name, config, loaded, session, screen, options, interrupts)
        except (BatchError, SparkLostError) as error:
            if interrupts.asked.is_set():  # a service manager may end Spark's processes, too
                raise KeyboardInterrupt from error
            raise
        screen.still()
        screen.summary(name, end.statistics, end.letters_at, at_end=end.at_end)
        if options.as_json:
            facts = summary_facts(
                name, end.statistics, screen.secs, loaded.topology, at_end=end.at_end
            )
            write_json(facts)
        _keep_classes(session, screen)
    _close_stdout(screen)
    return Code.UNDONE if undone(end.statistics) else Code.DONE


def _check(name: str, loaded: Loaded, config: Config, options: RunOptions) -> None:
    topology = loaded.topology
    if options.page:
        check_extra()
    check_ahead(topology, options.checkpoint, name=name, config=config, taps=options.taps)
    for spout in topology.spouts:
        find_sink(config.override(dict(spout.settings)).dead_letter_sink)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """The end of a run.

    Attributes:
        statistics: the last ones.
        letters_at: the options that lead to the dead letters.
        at_end: whether the sources had nothing more.
    """

    statistics: Statistics
    letters_at: str
    at_end: bool


def _start_spark(
    name: str, options: RunOptions, log: SparkMessages, screen: Screen, loaded: Loaded
) -> Any:  # a SparkSession; only sparkstorm.spark names it
    from sparkstorm.spark.driver.session import is_local, make_session

    master = options.master
    screen.status(f"starting Spark on {master}")
    try:
        with log.opened() as output:
            session = make_session(name, master, options.spark, output=output)
    except SparkstormError:
        raise
    except Exception as error:
        raise EnvironmentFault(
            f"Spark did not start on --master {master}: {_cause(error, log)} (run again with "
            f"--verbose to see Spark's own messages)"
        ) from error
    if not is_local(master):
        _ship_modules(session, loaded)
    return session


def _keep_classes(session: Any, screen: Screen) -> None:
    """Make the archive of Java's classes, if there is none yet."""
    from sparkstorm.java import find_java
    from sparkstorm.spark.driver.class_archive import ClassArchive

    archive = ClassArchive.find(find_java())
    if archive is not None and archive.can_be_made:
        screen.status("keeping Java's classes, so that the next start is quicker (once)")
        archive.make(session)


def _stop_spark(session: Any) -> None:
    from sparkstorm.spark.driver.jvm import stop_session

    stop_session(session)


def _watch(
    name: str,
    config: Config,
    loaded: Loaded,
    session: Any,
    screen: Screen,
    options: RunOptions,
    interrupts: Interrupts,
) -> _End:
    """Run until the end, or until somebody asks to stop."""
    from sparkstorm.spark.runner import submit

    run = submit(
        loaded.topology,
        name=name,
        config=config,
        session=session,
        checkpoint=options.checkpoint,
        taps=options.taps,
        on_tap=screen.tap,
        on_step=screen.status,
        origin=loaded.origin(options.target, options.args, options.settings),
    )
    screen.statistics = run.statistics
    with ExitStack() as stack:
        # Stops a run that went wrong; after a good end this does nothing.
        stack.callback(run.stop, drain=False)
        interrupts.drain_first()
        if options.page:
            url = stack.enter_context(own_page(name, options.page_port))
            if url is not None:
                screen.note("page", url)
        screen.status("running")
        ended = run.wait_until_drained if options.available_now else run.await_termination
        at_end = False
        while not (interrupts.asked.is_set() or screen.reader_gone or at_end):
            screen.tick()
            at_end = ended(_LOOK_SECS)
        if interrupts.asked.is_set():
            screen.status("draining, once more Ctrl-C to stop at once")
            at_end = run.wait_until_drained(0.0)  # a run that waits for more may be at the end
        statistics = _drain(run, interrupts, options.drain_secs)
        return _End(statistics=statistics, letters_at=run.letters_at, at_end=at_end)


def _drain(run: Any, interrupts: Interrupts, secs: float) -> Statistics:
    """Finish pending messages, for some seconds, and stop; a second Ctrl-C does not wait.

    Raises:
        KeyboardInterrupt: there was a second Ctrl-C.
    """
    ended: Future[Statistics] = Future()

    def stop() -> None:
        try:
            ended.set_result(run.stop(drain=True, timeout=secs))
        except BaseException as error:  # noqa: BLE001 - handed to the main thread
            ended.set_exception(error)

    # On a thread, so that the main thread can hear the second Ctrl-C meanwhile.
    threading.Thread(target=stop, name="sparkstorm-drain", daemon=True).start()
    while not ended.done():
        wait([ended], _LOOK_SECS)
        if interrupts.at_once.is_set():
            raise KeyboardInterrupt
    return ended.result()


def _ship_modules(session: Any, loaded: Loaded) -> None:
    """Send the modules beside the topology's file to the executors of a cluster."""
    context = session.sparkContext
    for path in sorted(loaded.folder.glob("*.py")):
        context.addPyFile(str(path))
    # Spark ships single files or archives, so packages go as archives.
    for package in sorted(loaded.folder.glob("*/__init__.py")):
        folder, name = make_folder("ship"), package.parent.name
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        archive = shutil.make_archive(
            str(folder / name), "zip", root_dir=loaded.folder, base_dir=name
        )
        context.addPyFile(archive)


def _cause(error: BaseException, log: SparkMessages) -> str:
    """Return the line of an error, perhaps of Java's, that says what happened."""
    if "JAVA_GATEWAY_EXITED" in str(error) and (words := log.last_words()):
        return words
    lines = [line.strip().lstrip(": ") for line in str(error).splitlines() if line.strip()]
    java = [line for line in lines if "Exception: " in line or "Error: " in line]
    return (java or lines or [type(error).__name__])[0]


def _close_stdout(screen: Screen) -> None:
    """Keep Python from complaining on exit if nobody reads stdout any more."""
    if screen.reader_gone:
        leave_unread(sys.stdout)
