"""The options and help of ``sparkstorm state``."""

from typing import Annotated

import typer

from sparkstorm.cli.edge import edge

__all__ = ["app"]

app = typer.Typer(
    name="state",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Look at the state that bolts keep.",
    epilog="Example: [bold]sparkstorm state show word-count count --checkpoint DIR[/]",
)


@app.callback()
def _root() -> None:
    """Keep ``show`` a command of its own."""


@app.command(
    epilog="Example: [bold]sparkstorm state show word-count count --checkpoint DIR --key storm[/]"
)
def show(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The topology's name.", show_default=False)
    ],
    component: Annotated[
        str, typer.Argument(metavar="COMPONENT", help="The bolt's id.", show_default=False)
    ],
    *,
    checkpoint: Annotated[
        str,
        typer.Option(
            "--checkpoint",
            metavar="DIR",
            help="The checkpoint folder of the topology.",
            show_default=False,
        ),
    ],
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            metavar="KEY",
            help="Only this key: text, or JSON (a list is a tuple). May be repeated.",
            show_default=False,
        ),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            metavar="NAME",
            help="Only the named state, or tuples/NAME for held tuples.",
            show_default="all",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show Spark's own messages, and traces of errors.")
    ] = False,
) -> None:
    """Show the committed state of a bolt, of a running or a stopped topology.

    A table on a terminal, JSON lines otherwise. The command reads the checkpoint by a Spark of its
    own, and loads no code of the topology: objects of the topology's classes are shown by name.
    """
    with edge(verbose):
        from sparkstorm.cli.state.commands import StateOptions, read_state
        from sparkstorm.cli.state.view import show_rows

        options = StateOptions(
            name=name,
            component=component,
            checkpoint=checkpoint,
            keys=keys or (),
            state=state,
            verbose=verbose,
        )
        with read_state(options) as rows:
            show_rows(rows)
