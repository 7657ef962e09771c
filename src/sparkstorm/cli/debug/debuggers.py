"""The debuggers: pdb, a class like it, or debugpy; and the watcher that stops in one call."""

import bdb
import contextlib
import importlib
import pdb
import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol, final

from sparkstorm.cli.terminal import say
from sparkstorm.errors import ConfigError, EnvironmentFault
from sparkstorm.local.failing_call import CallCounter, CallPlace
from sparkstorm.local.watching import Call
from sparkstorm.texts.user_errors import USER_ERRORS, message_of, place_of

__all__ = ["DebugEnded", "Debugger", "DebugpyDebugger", "PdbDebugger", "Stopper", "find_debugger"]

_OUR_MODULES = ["sparkstorm.*"]
"""Stepping passes over the engine: the user's next line is of interest."""


class DebugEnded(BaseException):
    """The user has seen enough. No ``Exception``: the engine takes those for a bolt's."""


class Debugger(Protocol):
    """Stops in the user's code.

    Attributes:
        hint: how to go on, for people.
    """

    hint: str

    def enter(self) -> None:
        """Stop at the next line of user code in this thread."""
        ...

    def leave(self) -> None:
        """Follow this thread no longer."""
        ...

    def post_mortem(self, error: BaseException) -> None:
        """Look at the frames of an error, with their locals alive."""
        ...


@final
class PdbDebugger:
    """Python's own debugger on this terminal, or a class with its methods.

    Args:
        kind: the class.
    """

    hint = "c goes on to the error, q ends"

    def __init__(self, kind: Callable[..., Any] = pdb.Pdb) -> None:
        try:
            self._pdb = kind(skip=_OUR_MODULES)
        except TypeError:  # a class without the argument steps through the engine as well
            self._pdb = kind()

    def enter(self) -> None:
        """Stop at the next line of user code."""
        self._pdb.reset()
        sys.settrace(self._pdb.trace_dispatch)

    def leave(self) -> None:
        """Follow this thread no longer."""
        sys.settrace(None)

    def post_mortem(self, error: BaseException) -> None:
        """Open the debugger at the line that raised."""
        self._pdb.reset()
        self._pdb.interaction(None, error.__traceback__)


@final
class DebugpyDebugger:
    """An editor's debugger, which comes by a port of this machine.

    Args:
        port: the port.

    Raises:
        EnvironmentFault: debugpy is not installed.
    """

    hint = "step into the call"

    def __init__(self, port: int) -> None:
        try:
            self._debugpy: Any = importlib.import_module("debugpy")
        except ModuleNotFoundError as error:
            raise EnvironmentFault(
                "--listen needs the package debugpy, which is not installed: pip install debugpy, "
                "or leave --listen out for pdb on this terminal"
            ) from error
        self._port = port

    def enter(self) -> None:
        """Wait for the editor, and stop."""
        try:
            self._debugpy.listen(("127.0.0.1", self._port))
        except (RuntimeError, OSError) as error:
            raise ConfigError(
                f"debugpy cannot listen on port {self._port}: {error}. Give another port"
            ) from error
        say(f"waiting for an editor to attach to 127.0.0.1:{self._port} (Ctrl-C ends)", err=True)
        self._debugpy.wait_for_client()
        self._debugpy.breakpoint()

    def leave(self) -> None:
        """Do nothing: the editor goes with the process."""

    def post_mortem(self, error: BaseException) -> None:
        """Do nothing: debugpy has no post mortem, but stops at raised errors if asked to."""


def find_debugger(pdbcls: str | None, port: int | None) -> Debugger:
    """Return the debugger of the command line.

    Raises:
        ConfigError: ``pdbcls`` names no class.
        EnvironmentFault: debugpy is not installed.
    """
    if port is not None:
        return DebugpyDebugger(port)
    if pdbcls is None:
        return PdbDebugger()
    module, _, name = pdbcls.partition(":")
    try:
        kind = getattr(importlib.import_module(module), name)
        return PdbDebugger(kind)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigError(
            f"--pdbcls {pdbcls!r} cannot be used: {error}. Write it as module:Class, for example "
            f"IPython.terminal.debugger:TerminalPdb"
        ) from error


@final
class Stopper:
    """A watcher that stops in one call, and ends the run behind it.

    Args:
        place: the call.
        make_debugger: makes the debugger, once the standard streams are the terminal's again.

    Attributes:
        reached: whether the run came to the call.
    """

    def __init__(self, place: CallPlace, make_debugger: Callable[[], Debugger]) -> None:
        self.reached = False
        self._place = place
        self._make_debugger = make_debugger
        self._counter = CallCounter()
        self._streams = sys.stdout, sys.stderr

    def call(self, call: Call) -> Any:
        """Make a call, or stop in it."""
        if not self._place.holds(self._counter.place(call)):
            return call.bound()(*call.arguments)
        with self._stopped() as debugger:
            function = call.bound()
            debugger.enter()
            function(*call.arguments)
        raise DebugEnded

    async def await_call(self, call: Call) -> Any:
        """Make the call of an ``async def execute``, or stop in it."""
        if not self._place.holds(self._counter.place(call)):
            return await call.bound()(*call.arguments)
        with self._stopped() as debugger:
            function = call.bound()
            debugger.enter()
            await function(*call.arguments)
        raise DebugEnded

    @contextlib.contextmanager
    def _stopped(self) -> Iterator[Debugger]:
        """Give the terminal back to the user while one call runs; tasks capture prints."""
        self.reached = True
        out, err = self._streams
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            debugger = self._make_debugger()
            try:
                yield debugger
            except bdb.BdbQuit:
                raise DebugEnded from None
            except USER_ERRORS as error:
                debugger.leave()
                say(f"{message_of(error)}{place_of(error)}", err=True)
                debugger.post_mortem(error)
                raise DebugEnded from error
            finally:
                debugger.leave()
            say(f"{self._place.method} has returned without an error", err=True)
