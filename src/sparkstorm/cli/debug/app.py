"""The options and help of ``sparkstorm debug``."""

from pathlib import Path
from typing import Annotated

import typer

from sparkstorm.cli.edge import edge
from sparkstorm.cli.letters.app import Checkpoint, Folder, Topology
from sparkstorm.errors import ConfigError

__all__ = ["EPILOG", "debug"]

EPILOG = "Example: [bold]sparkstorm debug 3f9c --checkpoint DIR[/]"


def debug(
    letter: Annotated[
        str,
        typer.Argument(
            metavar="LETTER",
            help="The dead letter's id, or how it begins; or the spout's name for the message.",
            show_default=False,
        ),
    ],
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE.py|MODULE:NAME|FILE.yaml]",
            help="Where the topology is, as for [bold]run[/].",
            show_default="where the last run had it",
        ),
    ] = None,
    args: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- ARGS…]",
            help="Arguments for the function topology(args).",
            show_default=False,
        ),
    ] = None,
    *,
    checkpoint: Checkpoint = None,
    folder: Folder = None,
    topology: Topology = None,
    running: Annotated[
        str | None,
        typer.Option(
            "--running",
            metavar="TOPOLOGY",
            help="LETTER is an unfinished message of this running topology, by the id that "
            "[bold]sparkstorm messages[/] shows, or by its name.",
            show_default=False,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "-c",
            "--config",
            metavar="KEY=VALUE",
            help="A setting of the topology, as for [bold]run[/]. May be repeated.",
            show_default=False,
        ),
    ] = None,
    stop_in: Annotated[
        str | None,
        typer.Option(
            "--break",
            metavar="COMPONENT",
            help="Stop in this bolt, also if the message does not fail there.",
            show_default="the bolt that failed",
        ),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(
            "--test",
            metavar="FILE",
            help="Write a test for pytest instead, which passes once the bolt is mended.",
            show_default=False,
        ),
    ] = None,
    pdbcls: Annotated[
        str | None,
        typer.Option(
            "--pdbcls",
            metavar="MODULE:CLASS",
            help="Another debugger, for example IPython.terminal.debugger:TerminalPdb.",
            show_default="pdb",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--listen",
            metavar="PORT",
            help="Wait for an editor's debugger on this port (debugpy) instead.",
            min=1,
            max=65535,
            show_default=False,
        ),
    ] = None,
    no_state: Annotated[
        bool, typer.Option("--no-state", help="Begin with empty state: does not start Spark.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show Spark's own messages, and traces of errors.")
    ] = False,
) -> None:
    """Run a failed message in this process, and stop in the bolt at the failing tuple.

    The debugger stops where the failing call of [bold]execute[/] begins; [bold]c[/] goes on to the
    line that raises. The state is that of the last commit. No spout runs, and nothing is
    committed, acked or moved; but bolts run for real, twice, up to the failing one.

    The state is loaded as a run would load it, by unpickling: use checkpoints that you trust.
    """
    with edge(verbose):
        from sparkstorm.cli.debug.commands import DebugOptions, debug_letter

        if pdbcls is not None and port is not None:
            raise ConfigError("--pdbcls and --listen are two debuggers: give one of them")
        if running is not None and (checkpoint, folder, topology) != (None, None, None):
            raise ConfigError("--running says where the message is: give no other place")
        debug_letter(
            DebugOptions(
                letter=letter,
                target=target,
                args=args or (),
                settings=settings or (),
                topology=topology,
                running=running,
                checkpoint=checkpoint,
                folder=folder,
                stop_in=stop_in,
                with_state=not no_state,
                pdbcls=pdbcls,
                port=port,
                test=test,
                verbose=verbose,
            )
        )
