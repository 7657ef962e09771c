"""The work of ``sparkstorm debug``: find the letter, find the failing call, stop in it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from sparkstorm.cli.debug.chosen import (
    Chosen,
    check_component,
    find_letter,
    find_running,
    load_known,
    title_of,
)
from sparkstorm.cli.debug.committed import committed_state
from sparkstorm.cli.debug.debuggers import DebugEnded, Debugger, Stopper, find_debugger
from sparkstorm.cli.debug.pytest_file import PytestFile
from sparkstorm.cli.debug.seen_state import SeenState
from sparkstorm.cli.loading import Loaded, load
from sparkstorm.cli.settings import parse_settings
from sparkstorm.cli.terminal import say
from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.errors import ComponentError, ConfigError
from sparkstorm.local.failing_call import ANY_TASK, CallPlace, FailingCall
from sparkstorm.local.one_message import Ending, OneMessage, OpenStore
from sparkstorm.testing.messages import given_state, plan_for_one
from sparkstorm.texts.user_errors import message_of, place_of
from sparkstorm.verdicts import Reason

__all__ = ["DebugOptions", "debug_letter"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DebugOptions:
    """The options of the command line."""

    letter: str
    target: str | None = None
    args: Sequence[str] = ()
    settings: Sequence[str] = ()
    topology: str | None = None
    running: str | None = None
    checkpoint: str | None = None
    folder: Path | None = None
    stop_in: str | None = None
    with_state: bool = True
    pdbcls: str | None = None
    port: int | None = None
    test: Path | None = None
    verbose: bool = False


def debug_letter(options: DebugOptions) -> None:
    """Run a dead letter's message up to the call that fails, and stop in the call.

    1. find the letter, or the message of a running topology, and load the topology
    2. run the message once to find the failing call
    3. write the test, if one is wanted
    4. else run the message again, up to the call, and stop there

    Raises:
        ConfigError: the letter does not fit the topology, or its code is in no bolt of Python.
    """
    loaded = None if options.target is None else load(options.target, options.args)
    chosen = _choose(options)
    if loaded is None:
        loaded, origin = load_known(chosen)
        options = replace(
            options,
            target=origin.target,
            args=origin.args,
            settings=[*origin.settings, *options.settings],
        )
    # Before the state is read: a debugger that is missing should not show after seconds.
    hint = find_debugger(options.pdbcls, options.port).hint
    letter, manifest = chosen.letter, chosen.manifest
    component = options.stop_in or letter.failure.component
    check_component(loaded, letter, component)
    partitions = 2 if manifest is None else manifest.partitions
    checkpoint = chosen.checkpoint if options.with_state else None
    with committed_state(checkpoint, manifest, verbose=options.verbose) as open_store:
        seen = SeenState(open_store)
        one = _one_message(options, loaded, letter, partitions, component, seen.store)
        if letter.failure.reason is Reason.LOST:
            _stop_in_lost(options, letter, one, component, hint)
            return
        failing, ending = _find(one)
    if options.test is not None:
        _write_test(options, loaded, letter, component, seen)
        return
    place = _place(options, letter, failing, ending, component)
    if place is not None:
        _say_where(letter, failing, ending, place)
        _stop(one, place, hint, lambda: find_debugger(options.pdbcls, options.port))


def _choose(options: DebugOptions) -> Chosen:
    if options.running is not None:
        return find_running(options.letter, options.running)
    return find_letter(
        options.letter,
        topology=options.topology,
        checkpoint=options.checkpoint,
        folder=options.folder,
    )


def _stop_in_lost(
    options: DebugOptions, letter: DeadLetter, one: OneMessage, component: str, hint: str
) -> None:
    """Stop in the first tuple: a message that may end its process is not run ahead.

    Raises:
        ConfigError: a test is wanted, which would end pytest.
    """
    if options.test is not None:
        raise ConfigError(
            f"the dead letter {letter.id} was lost with its process, and might end pytest, too: "
            f"step through it without --test"
        )
    say(f"{title_of(letter)}: {letter.failure}. Going on may end this process", err=True)
    place = CallPlace(component, ANY_TASK, "execute", 0)
    _stop(one, place, hint, lambda: find_debugger(options.pdbcls, options.port))


def _one_message(
    options: DebugOptions,
    loaded: Loaded,
    letter: DeadLetter,
    partitions: int,
    component: str,
    open_store: OpenStore | None,
    state: Mapping[str, Mapping[Any, Any]] | None = None,
) -> OneMessage:
    plan = plan_for_one(
        loaded.topology,
        parse_settings(options.settings, loaded.settings),
        name=letter.topology,
        partitions=partitions,
    )
    open_store = open_store or given_state(plan, state)
    return OneMessage(plan, letter, until=component, open_store=open_store)


def _find(one: OneMessage) -> tuple[FailingCall, Ending]:
    """Run the message; an error that would stop a topology is also a failing call."""
    failing = FailingCall(writes=False)
    try:
        return failing, one.run(failing)
    except ComponentError:
        if failing.error is None:
            raise
        return failing, Ending()


def _place(
    options: DebugOptions,
    letter: DeadLetter,
    failing: FailingCall,
    ending: Ending,
    component: str,
) -> CallPlace | None:
    """Return the call to stop in; None if the message does not fail any more."""
    place = failing.place
    if place is None and ending.failure is not None:
        place = failing.first.get(ending.failure.component)
    if options.stop_in is not None and (place is None or place.component != options.stop_in):
        place = failing.first.get(options.stop_in)
        if place is None:
            raise ConfigError(
                f"no tuple of the message reaches {options.stop_in!r}: choose another component "
                f"with --break"
            )
    if place is None:
        say(f"{title_of(letter)} does not fail any more: {_fate(ending, component)}")
    return place


def _fate(ending: Ending, component: str) -> str:
    if ending.is_open:
        return (
            f"{component!r} or a bolt before holds it for a later batch. --break COMPONENT stops "
            f"all the same"
        )
    return (
        f"it passes {component!r} (components behind did not run). A dead letter is replayed by "
        f"sparkstorm dead-letters replay"
    )


def _say_where(letter: DeadLetter, failing: FailingCall, ending: Ending, place: CallPlace) -> None:
    why = "the message does not fail here now"
    if failing.place == place and failing.error is not None:
        why = f"{message_of(failing.error)}{place_of(failing.error)}"
    elif place.method == "write":
        why = "it has not been called: it writes for real as soon as you go on"
    elif ending.failure is not None and ending.failure.component == place.component:
        why = ending.failure.message
    say(f"{title_of(letter)} in {place.component} (task {place.task}): {why}", err=True)


def _stop(
    one: OneMessage, place: CallPlace, hint: str, make_debugger: Callable[[], Debugger]
) -> None:
    way = f"Stopping at the beginning of {place.method}; {hint}"
    say(f"{way}. Nothing is committed or acked", err=True)
    stopper = Stopper(place, make_debugger)
    try:
        one.run(stopper)
    except DebugEnded:
        return
    except ComponentError:
        if stopper.reached:
            return
        raise
    raise ConfigError(
        f"no tuple of the message came to {place.component!r}, perhaps since bolts before do not "
        f"do the same twice. Stop elsewhere with --break"
    )


def _write_test(
    options: DebugOptions, loaded: Loaded, letter: DeadLetter, component: str, seen: SeenState
) -> None:
    """Write the test, and say if the message passes with what a test has of the state."""
    assert options.test is not None  # noqa: S101 - the caller has looked
    test = PytestFile(
        path=options.test,
        letter=letter,
        loaded=loaded,
        target=options.target or "",
        args=options.args,
        settings=options.settings,
        until=component,
        state=seen.content(),
    )
    for path in test.write():
        say(f"wrote {path}")
    one = _one_message(options, loaded, letter, 2, component, None, test.state)
    failing, ending = _find(one)
    if failing.place is None and ending.failure is None:
        say("the test passes already: the message does not fail here any more", err=True)
