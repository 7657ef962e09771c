"""The options and help of the commands on running topologies."""

from dataclasses import asdict
from typing import Annotated

import typer

from sparkstorm.cli.edge import edge
from sparkstorm.cli.terminal import say, write_json

__all__ = ["add_commands"]

Topology = Annotated[
    str,
    typer.Argument(
        metavar="TOPOLOGY",
        help="Its name, or how its id begins; see sparkstorm list.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON, for scripts.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show traces of errors.")]


def add_commands(app: typer.Typer) -> None:
    """Add the commands to the command tree."""
    app.command("list", epilog="Example: [bold]sparkstorm list --json[/]")(list_)
    app.command(epilog="Example: [bold]sparkstorm status word_count --watch[/]")(status)
    app.command(epilog="Example: [bold]sparkstorm kill word_count --wait 30[/]")(kill)
    app.command(epilog="Example: [bold]sparkstorm activate word_count[/]")(activate)
    app.command(epilog="Example: [bold]sparkstorm deactivate word_count[/]")(deactivate)
    app.command(epilog="Example: [bold]sparkstorm messages word_count --state retry[/]")(messages)
    app.command(epilog="Example: [bold]sparkstorm trace word_count orders/0/42[/]")(trace)


def list_(as_json: AsJson = False, verbose: Verbose = False) -> None:
    """List the topologies that run on this machine under this user.

    A DEAD one was killed: start it again on its checkpoint, and it goes on. A DEAF one does not
    answer in time.
    """
    with edge(verbose):
        from sparkstorm.cli.letters.view import show_plainly
        from sparkstorm.cli.running.commands import deaf, listed
        from sparkstorm.cli.running.view import topologies_table

        found = listed()
        if as_json:
            for entry, stand in found:
                write_json(
                    {
                        "id": entry.id,
                        "name": entry.name,
                        "pid": entry.holder.pid,
                        "checkpoint": entry.checkpoint,
                        "page": entry.page,
                        "status": deaf(entry) if stand is None else stand.status,
                        "situation": None if stand is None else asdict(stand),
                    }
                )
        elif found:
            show_plainly(topologies_table(found))
        else:
            say("no topology runs on this machine under this user")


def status(
    topology: Topology,
    *,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it again every two seconds.")
    ] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Show how a running topology stands: counts, components, latencies."""
    with edge(verbose):
        from sparkstorm.cli.letters.view import show_plainly
        from sparkstorm.cli.running.commands import standings
        from sparkstorm.cli.running.view import status_page

        for found in standings(topology, 2.0 if watch else None):
            if as_json:
                write_json(found)
            else:
                show_plainly(status_page(found))


def kill(
    topology: Topology,
    *,
    wait: Annotated[
        float | None,
        typer.Option(
            "--wait",
            "-w",
            min=0,
            metavar="SECS",
            help="How long pending messages may finish; 0 ends at once, and they come again.",
            show_default="the message time-out",
        ),
    ] = None,
    now: Annotated[
        bool, typer.Option("--no-follow", help="Return at once, not when it has ended.")
    ] = False,
    verbose: Verbose = False,
) -> None:
    """End a running topology: no new messages, finish the pending ones, stop.

    Nothing is lost: started again on its checkpoint, it goes on.
    """
    with edge(verbose):
        from sparkstorm.cli.running import commands

        commands.kill(topology, wait, until_gone=not now, told=say)


def activate(topology: Topology, verbose: Verbose = False) -> None:
    """Let the spouts of a topology give messages again."""
    with edge(verbose):
        from sparkstorm.cli.running.commands import find

        entry, control = find(topology)
        control.activate()
        say(f"{entry.name} is active")


def deactivate(topology: Topology, verbose: Verbose = False) -> None:
    """Let the spouts of a topology give no new messages; pending ones go on."""
    with edge(verbose):
        from sparkstorm.cli.running.commands import find

        entry, control = find(topology)
        control.deactivate()
        say(f"{entry.name} rests: its spouts are not asked, and pending messages finish")


def messages(
    topology: Topology,
    *,
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            metavar="waiting|running|open|retry",
            help="Only messages in this state.",
            show_default=False,
        ),
    ] = None,
    spout: Annotated[
        str | None, typer.Option("--spout", help="Only of this spout.", show_default=False)
    ] = None,
    component: Annotated[
        str | None,
        typer.Option(
            "--component",
            help="Only those that it holds, or that failed in it last.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Only those whose name has this text.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many at most.")] = 50,
    retry: Annotated[
        bool, typer.Option("--retry-now", help="Try the listed messages in the next batch.")
    ] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """List the unfinished messages of a topology, the oldest first: where, and why.

    States: waiting for a batch; running in one; open, since a bolt holds a tuple; in wait for a
    retry.
    """
    with edge(verbose):
        from sparkstorm.cli.letters.view import show_plainly
        from sparkstorm.cli.running.commands import find
        from sparkstorm.cli.running.view import messages_table

        _, control = find(topology)
        found = control.messages(
            state=state, spout=spout, component=component, name=name, limit=limit
        )
        if as_json:
            write_json(asdict(found))
        else:
            show_plainly(messages_table(found))
        if retry:
            count = control.retry([one.id for one in found.messages])
            say(f"{count:,} messages are tried in the next batch", err=as_json)


def trace(
    topology: Topology,
    message: Annotated[
        str | None,
        typer.Argument(
            metavar="[MSG]",
            help="Its id as sparkstorm messages shows it, or its spout's name for it.",
            show_default=False,
        ),
    ] = None,
    *,
    follow: Annotated[
        str | None,
        typer.Option(
            "--follow",
            metavar="TEXT",
            help="Keep the trees of all messages to come whose name has this text.",
            show_default=False,
        ),
    ] = None,
    unfollow: Annotated[
        str | None,
        typer.Option("--unfollow", metavar="TEXT", help="Keep them no longer.", show_default=False),
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Show one message: its attempts side by side, who emitted what, and which tuple is open.

    Trees are kept of attempts after the first, of followed messages, and of one message of each
    spout task in each batch.
    """
    with edge(verbose):
        from sparkstorm.cli.letters.view import show_plainly
        from sparkstorm.cli.running import commands
        from sparkstorm.cli.running.view import message_page
        from sparkstorm.errors import ConfigError

        _, control = commands.find(topology)
        if follow is not None:
            control.follow(follow)
        if unfollow is not None:
            control.unfollow(unfollow)
        if follow is not None or unfollow is not None:
            say(f"followed: {', '.join(control.followed()) or 'nothing'}", err=as_json)
        if message is None:
            if follow is None and unfollow is None:
                raise ConfigError("name a message, or a text with --follow")
            return
        found = commands.trace(topology, message)
        if as_json:
            write_json(asdict(found))
        else:
            show_plainly(message_page(found))
