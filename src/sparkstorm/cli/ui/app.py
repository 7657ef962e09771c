"""The command ``sparkstorm ui``: the web page of this machine's topologies."""

import os
import signal
import threading
import webbrowser
from typing import Annotated

import typer

from sparkstorm.cli.edge import edge
from sparkstorm.cli.terminal import say
from sparkstorm.errors import EnvironmentFault

__all__ = ["ui"]


def ui(
    *,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            help="The address to listen on. Beyond this machine, a token is needed to look.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes any free one.")
    ] = 8642,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="SPARKSTORM_UI_TOKEN",
            help="Whoever has it may look and steer; 16 characters at least.",
            show_default="none on this machine, a new one beyond it",
        ),
    ] = None,
    allowed: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="A name under which the page is opened, as behind a proxy. May be repeated.",
            show_default=False,
        ),
    ] = None,
    child: Annotated[
        bool, typer.Option("--child", hidden=True, help="End at the end of stdin.")
    ] = False,
    opened: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show traces of errors.")] = False,
) -> None:
    """Serve the web page and the REST interface of all topologies of this machine and user.

    Ends by Ctrl-C; the topologies do not notice. Everybody on this machine can open the page,
    unless a token is set.
    """
    with edge(verbose):
        try:
            from sparkstorm.ui import serve
            from sparkstorm.ui.machine import Machine
        except ImportError as error:
            raise EnvironmentFault(
                f"the web page needs {error.name}: pip install 'sparkstorm[ui]'"
            ) from None

        def ready(url: str) -> None:
            say(f"the page is at {url}")
            if opened:
                webbrowser.open(url)

        if child:
            threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
        serve(Machine(), host, port, token=token, hosts=allowed or (), ready=ready)


def _end_with_parent() -> None:
    """End this process once its parent, which holds the other end of stdin, has ended."""
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
