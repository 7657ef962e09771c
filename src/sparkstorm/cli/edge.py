"""The outer edge of every command: errors become one sentence and an exit code."""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import NoReturn

import typer
from rich.text import Text

from sparkstorm.cli.terminal import Terminal, bear_any_text, leave_unread, say
from sparkstorm.errors import BatchError, InternalError, SparkLostError, SparkstormError
from sparkstorm.texts.showing import indented, text_of, visible_lines

__all__ = ["Code", "edge"]


class Code(IntEnum):
    """The exit codes of every command."""

    DONE = 0
    """Every message was acked."""
    UNDONE = 1
    """Messages were left pending or given up, or the run failed."""
    BAD_INPUT = 2
    """A file, a setting, the checkpoint or the environment does not fit."""
    SPARK_LOST = 3
    """Spark's JVM ended; start the topology again on the same checkpoint."""
    INTERRUPTED = 130
    """Stopped at once, by a second Ctrl-C."""


_WE = "sparkstorm: "
_STOPPED = "stopped at once; a restart on the same checkpoint goes on"


@contextmanager
def edge(verbose: bool = False) -> Iterator[None]:
    """Turn an error into one sentence and an exit code; ``verbose`` adds a traceback."""
    bear_any_text()
    try:
        yield
    except KeyboardInterrupt:
        _leave(_STOPPED, Code.INTERRUPTED)
    except (BatchError, InternalError) as error:
        if _was_interrupted(error):
            _leave(_STOPPED, Code.INTERRUPTED, verbose)
        _leave("\n".join([str(error), *_notes(error)]), Code.UNDONE, verbose)
    except SparkLostError as error:
        _leave("\n".join([str(error), *_notes(error)]), Code.SPARK_LOST, verbose)
    except SparkstormError as error:
        _leave(str(error), Code.BAD_INPUT, verbose)
    except BrokenPipeError:  # as in "sparkstorm explain … | head": the reader has seen enough
        leave_unread(sys.stdout)
        raise typer.Exit(Code.DONE) from None
    # Typer's own ends of a command carry their exit code.
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:  # noqa: BLE001 - the outer edge of the program
        if _was_interrupted(error):
            _leave(_STOPPED, Code.INTERRUPTED, verbose)
        text = f"unexpected {type(error).__name__}: {text_of(error)}".strip()
        _leave(f"{text} (see where with --verbose, and please report it)", Code.UNDONE, verbose)


def _was_interrupted(error: BaseException | None) -> bool:
    """Return whether Ctrl-C led to an error."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _notes(error: BaseException) -> list[str]:
    return getattr(error, "__notes__", [])


def _leave(message: str, code: Code, verbose: bool = False) -> NoReturn:
    if verbose:
        say(indented(traceback.format_exc()), err=True)
    console = Terminal(stderr=True, soft_wrap=True)
    lines = visible_lines(message, " " * len(_WE))
    console.print(Text.assemble((_WE, "bold red"), lines))
    raise typer.Exit(code)
