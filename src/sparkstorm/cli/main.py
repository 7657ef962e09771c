"""The command tree: options and help; every command's work is in a module of its own."""

from pathlib import Path
from typing import Annotated

import typer

from sparkstorm._version import __version__, is_compiled
from sparkstorm.cli.debug.app import EPILOG, debug
from sparkstorm.cli.edge import edge
from sparkstorm.cli.letters import app as letters_app
from sparkstorm.cli.running.app import add_commands
from sparkstorm.cli.state import app as state_app
from sparkstorm.cli.terminal import bear_any_text, say
from sparkstorm.cli.ui.app import ui
from sparkstorm.garbage import rare_collections

__all__ = ["app", "main"]

app = typer.Typer(
    name="sparkstorm",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: [bold]sparkstorm new hello && sparkstorm run hello/topology.py "
    "--available-now[/]",
)

Target = Annotated[
    str,
    typer.Argument(
        metavar="FILE.py|MODULE:NAME|FILE.yaml",
        help="Where the topology is: a file that defines [bold]topology[/] (a topology, or a "
        "function that returns one), a name in a module, or a YAML file of Storm's Flux.",
        show_default=False,
    ),
]
Args = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- ARGS…]",
        help="Arguments for the function topology(args).",
        show_default=False,
    ),
]
Name = Annotated[
    str | None,
    typer.Option("--name", help="The topology's name.", show_default="the file's name"),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "-c",
        "--config",
        metavar="KEY=VALUE",
        help="A setting, by its own name or by Storm's key. May be repeated.",
        show_default=False,
    ),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Show Spark's own messages, and traces of errors.")
]


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"sparkstorm {__version__} ({'compiled' if is_compiled() else 'plain Python'})")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the version, and whether it is compiled.",
        ),
    ] = False,
) -> None:
    """Run topologies of spouts and bolts on Spark, every message tracked."""


@app.command(
    epilog="Example: [bold]sparkstorm run examples/word_count.py --available-now "
    "-c max_retries=0 --tap count -- book.txt[/]"
)
def run(
    target: Target,
    args: Args = None,
    *,
    master: Annotated[
        str, typer.Option("--master", help="Where Spark runs: local[N], spark://…, yarn, …")
    ] = "local[*]",
    name: Name = None,
    settings: Settings = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint",
            metavar="DIR",
            help="Folder that keeps progress and state over restarts. Without one, a failed "
            "message is tried again three times at most, unless -c max_retries says otherwise.",
            show_default="a temporary one",
        ),
    ] = None,
    available_now: Annotated[
        bool,
        typer.Option("--available-now", help="Stop when all that is there has been processed."),
    ] = False,
    taps: Annotated[
        list[str] | None,
        typer.Option(
            "--tap",
            metavar="COMPONENT",
            help="Print what this component emits; as JSON lines if stdout is no terminal. "
            "May be repeated.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as one line of JSON on stdout.")
    ] = False,
    drain_secs: Annotated[
        float,
        typer.Option(
            "--drain-secs",
            min=0,
            help="How long Ctrl-C or SIGTERM lets pending messages finish.",
        ),
    ] = 60.0,
    page: Annotated[
        bool,
        typer.Option("--ui", help="Serve the web page of the running topology, until it ends."),
    ] = False,
    page_port: Annotated[
        int,
        typer.Option(
            "--ui-port",
            min=0,
            max=65535,
            help="The page's port; if it is taken, any free one.",
        ),
    ] = 8642,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            "--conf",
            metavar="KEY=VALUE",
            help="A setting of Spark, as for spark-submit. May be repeated.",
            show_default=False,
        ),
    ] = None,
    packages: Annotated[
        str | None,
        typer.Option("--packages", metavar="GROUP:NAME:VERSION,…", help="Jars from Maven Central."),
    ] = None,
    py_files: Annotated[
        str | None,
        typer.Option(
            "--py-files",
            metavar="FILE,…",
            help="Modules for this process and the workers: .py, .zip or .egg files.",
        ),
    ] = None,
    driver_memory: Annotated[
        str | None,
        typer.Option(
            "--driver-memory", metavar="SIZE", help="Memory of the driver's JVM, for example 2g."
        ),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Run a topology until it is drained (--available-now) or stopped by Ctrl-C or SIGTERM.

    The first Ctrl-C or SIGTERM finishes pending messages, then stops. The second stops at once.

    Exit codes: 0 every message acked; 1 messages were left pending or given up, or the run failed;
    2 a file, a setting, the checkpoint, the environment or a component is at fault; 3 Spark's JVM
    ended: start the topology again on the same checkpoint; 130 stopped at once.
    """
    with edge(verbose):
        from sparkstorm.cli.run import RunOptions, run_topology
        from sparkstorm.cli.settings import spark_settings

        code = run_topology(
            RunOptions(
                target=target,
                args=args or (),
                master=master,
                name=name,
                settings=settings or (),
                checkpoint=checkpoint,
                available_now=available_now,
                taps=taps or (),
                verbose=verbose,
                as_json=as_json,
                drain_secs=drain_secs,
                page=page,
                page_port=page_port,
                spark=spark_settings(
                    conf or (),
                    packages=packages,
                    py_files=py_files,
                    driver_memory=driver_memory,
                ),
            )
        )
        raise typer.Exit(code)


@app.command(epilog="Example: [bold]sparkstorm explain examples/word_count.py --mermaid[/]")
def explain(
    target: Target,
    args: Args = None,
    *,
    name: Name = None,
    settings: Settings = None,
    mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Draw it as a Mermaid flowchart instead.")
    ] = False,
    verbose: Verbose = False,
) -> None:
    """Show what a topology becomes on Spark: stages, exchanges, tasks, routes. Starts nothing."""
    with edge(verbose):
        from sparkstorm.cli.explain import explanation

        text = explanation(target, args or (), name=name, settings=settings or (), picture=mermaid)
        say(text)


@app.command(epilog="Example: [bold]sparkstorm new hello && cd hello && python -m pytest[/]")
def new(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A new or empty folder.", show_default=False)
    ],
    verbose: Verbose = False,
) -> None:
    """Write a starter project: a topology, its input, a test, a README."""
    with edge(verbose):
        from sparkstorm.cli.new import create_project

        for path in create_project(folder):
            say(f"wrote {path}")
        say(f"Now run it: sparkstorm run {folder / 'topology.py'} --available-now")


@app.command(
    epilog='Example, in Storm\'s Java: [bold]new ShellBolt("sparkstorm", "multilang", '
    '"words.py:Split")[/]'
)
def multilang(
    target: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py:CLASS|MODULE:CLASS",
            help="A spout or bolt: a class, or an instance.",
            show_default=False,
        ),
    ],
    *,
    arguments: Annotated[
        list[str] | None,
        typer.Option(
            "--arg",
            metavar="NAME=VALUE",
            help="An argument for the class, as JSON or text. May be repeated.",
            show_default=False,
        ),
    ] = None,
    serializer: Annotated[
        str, typer.Option("--serializer", help="How messages are written: json or msgpack.")
    ] = "json",
    verbose: Verbose = False,
) -> None:
    """Serve a component on stdin and stdout, as the child of Apache Storm or of another parent.

    Not for the terminal: Storm's ShellBolt or ShellSpout starts it.
    """
    with edge(verbose):
        from sparkstorm.cli.serving import serve_component

        raise typer.Exit(serve_component(target, arguments or (), serializer))


@app.command(
    "postgres-queue-ddl",
    epilog="Example: [bold]sparkstorm postgres-queue-ddl app.jobs | psql shop[/]",
)
def postgres_queue_ddl(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE", help="The table, perhaps with its schema.", show_default=False
        ),
    ],
    *,
    priority: Annotated[
        str | None,
        typer.Option("--priority", metavar="COLUMN", help="Rows of a higher value come first."),
    ] = None,
    done: Annotated[
        str | None,
        typer.Option(
            "--done", metavar="COLUMN", help="Keep acked rows, with the time of their ack."
        ),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Print the SQL of a table that a PostgresQueueSpout reads as a queue. Changes nothing."""
    with edge(verbose):
        from sparkstorm.postgres import QueueTable, queue_ddl

        say(queue_ddl(QueueTable(name=table, priority=priority, done=done)))


add_commands(app)
app.command(epilog="Example: [bold]sparkstorm ui --port 0 --open[/]")(ui)
app.command(epilog=EPILOG)(debug)
app.add_typer(letters_app.app)
app.add_typer(state_app.app)


def main() -> None:
    """Run the command line."""
    bear_any_text()  # for help, too
    with rare_collections():  # for the imports of the commands, and a run
        app()


if __name__ == "__main__":
    main()
