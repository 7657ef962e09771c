"""The options and help of ``sparkstorm dead-letters``."""

from pathlib import Path
from typing import Annotated

import typer

from sparkstorm.cli.edge import edge
from sparkstorm.cli.terminal import confirm, say, write_json
from sparkstorm.errors import ConfigError
from sparkstorm.texts.wording import counted

__all__ = ["app"]

app = typer.Typer(
    name="dead-letters",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Look at messages that were given up, replay or discard them.",
    epilog="Example: [bold]sparkstorm dead-letters list --checkpoint DIR --newer-than 2h[/]",
)

Id = Annotated[
    str, typer.Argument(metavar="ID", help="Its id, or how it begins.", show_default=False)
]
Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID…]", help="Ids, or how they begin.", show_default=False),
]
Topology = Annotated[
    str | None,
    typer.Option("--topology", help="Only of the topology of this name.", show_default=False),
]
Component = Annotated[
    str | None,
    typer.Option(
        "--component",
        help="Only what failed in this component, or came from this spout.",
        show_default=False,
    ),
]
Reason = Annotated[
    str | None,
    typer.Option(
        "--reason",
        metavar="failed|error|timeout|lost|expired",
        help="Only what failed at last for this reason.",
        show_default=False,
    ),
]
OlderThan = Annotated[
    str | None,
    typer.Option("--older-than", metavar="AGE", help="As in 30m, 2h, 3d.", show_default=False),
]
NewerThan = Annotated[
    str | None,
    typer.Option("--newer-than", metavar="AGE", help="As in 30m, 2h, 3d.", show_default=False),
]
Checkpoint = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="The checkpoint folder of the topology.",
        show_default="the folder of runs without one",
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        metavar="DIR",
        help="The folder that dead_letter_folder was set to.",
        show_default="~/.local/state/sparkstorm/dead-letters",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON lines, for scripts.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show traces of errors.")]


@app.command(
    "list",
    epilog="Example: [bold]sparkstorm dead-letters list --topology orders --reason error[/]",
)
def list_letters(
    *,
    topology: Topology = None,
    component: Component = None,
    reason: Reason = None,
    older_than: OlderThan = None,
    newer_than: NewerThan = None,
    checkpoint: Checkpoint = None,
    folder: Folder = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """List dead letters, the oldest first."""
    with edge(verbose):
        from sparkstorm.cli.letters.commands import LetterOptions, find, open_stores
        from sparkstorm.cli.letters.view import letters_table, show_plainly
        from sparkstorm.clock import SystemClock

        options = LetterOptions(
            topology=topology,
            component=component,
            reason=reason,
            older_than=older_than,
            newer_than=newer_than,
            checkpoint=checkpoint,
            folder=folder,
        )
        with open_stores(options) as stores:
            letters = [letter for one in find(stores, options) for letter in one.letters]
        letters.sort(key=lambda letter: letter.last_time)
        if as_json:
            for letter in letters:
                write_json(letter.to_json())
        elif letters:
            show_plainly(letters_table(letters, SystemClock().wall()))
        else:
            say("no dead letters")


@app.command(epilog="Example: [bold]sparkstorm dead-letters show 3f9c --checkpoint DIR[/]")
def show(
    letter: Id,
    *,
    topology: Topology = None,
    checkpoint: Checkpoint = None,
    folder: Folder = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Show all of one dead letter: where it is from, why it failed, traceback and payload."""
    with edge(verbose):
        from sparkstorm.cli.letters.commands import LetterOptions, find, open_stores
        from sparkstorm.cli.letters.view import letter_page, show_plainly

        options = LetterOptions(
            ids=[letter], topology=topology, checkpoint=checkpoint, folder=folder
        )
        with open_stores(options) as stores:
            found = find(stores, options)[0].letters[0]
        if as_json:
            write_json(found.to_json())
        else:
            show_plainly(letter_page(found))


@app.command(
    epilog="Example: [bold]sparkstorm dead-letters replay --component parse --newer-than 1d "
    "--rate 100 --checkpoint DIR[/]"
)
def replay(
    ids: Ids = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate", metavar="N", help="At most so many per second.", show_default="no limit"
        ),
    ] = None,
    topology: Topology = None,
    component: Component = None,
    reason: Reason = None,
    older_than: OlderThan = None,
    newer_than: NewerThan = None,
    checkpoint: Checkpoint = None,
    folder: Folder = None,
    verbose: Verbose = False,
) -> None:
    """Send dead letters through the topology again: by id, by filters, or --all.

    A running topology takes the letters up within about a second, else its next start does. An
    acked replay removes the letter; after a failure the letter stays.
    """
    with edge(verbose):
        from sparkstorm.cli.letters import commands

        options = commands.LetterOptions(
            ids=ids or (),
            topology=topology,
            component=component,
            reason=reason,
            older_than=older_than,
            newer_than=newer_than,
            checkpoint=checkpoint,
            folder=folder,
        )
        _check_choice(options.ids, options.selection().is_empty, everything)
        if rate is not None and not rate > 0:
            raise ConfigError(f"--rate {rate:g} is no rate: give a number above 0")
        with commands.open_stores(options) as stores:
            found = commands.find(stores, options)
            left_out = commands.replay(found, rate)
        asked = sum(len(one.letters) for one in found) - len(left_out)
        for letter in left_out:
            why = letter.note or "some of its values could not be written as JSON"
            say(f"{letter.id} cannot be replayed: {why}", err=True)
        say(f"{counted(asked, 'dead letter')} will be replayed by the running or the next run")


@app.command(epilog="Example: [bold]sparkstorm dead-letters discard --older-than 30d --yes[/]")
def discard(
    ids: Ids = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    topology: Topology = None,
    component: Component = None,
    reason: Reason = None,
    older_than: OlderThan = None,
    newer_than: NewerThan = None,
    checkpoint: Checkpoint = None,
    folder: Folder = None,
    verbose: Verbose = False,
) -> None:
    """Remove dead letters for good: by id, by filters, or --all."""
    with edge(verbose):
        from sparkstorm.cli.letters import commands

        options = commands.LetterOptions(
            ids=ids or (),
            topology=topology,
            component=component,
            reason=reason,
            older_than=older_than,
            newer_than=newer_than,
            checkpoint=checkpoint,
            folder=folder,
        )
        _check_choice(options.ids, options.selection().is_empty, everything)
        with commands.open_stores(options) as stores:
            found = commands.find(stores, options)
            count = sum(len(one.letters) for one in found)
            if count and not yes:
                confirm(f"Discard {counted(count, 'dead letter')} for good?")
            commands.discard(found)
        say(f"{counted(count, 'dead letter')} discarded")


def _check_choice(ids: object, no_filter: bool, everything: bool) -> None:
    if not ids and no_filter and not everything:
        raise ConfigError("which dead letters? Give ids, filters, or --all")
