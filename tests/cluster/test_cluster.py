"""Word count on a standalone cluster of one master and two workers, started here on loopback."""

import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import pyspark
import pytest

import sparkstorm
from sparkstorm.testing import PATIENCE_SECS

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

_ROOT = Path(__file__).parents[2]
_HOME = Path(pyspark.__file__).parent
_LOOPBACK = "127.0.0.1"
_HOSTS = ("127.0.0.1", "127.0.0.2")
"""Of the workers: two, since Spark does not run a task twice at a time on one host."""


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, absent: Callable[[str], NoReturn]
) -> Iterator[tuple[str, list[int]]]:
    """The address of the master, and the process ids of its workers, which lack our package."""
    from sparkstorm.errors import EnvironmentFault
    from sparkstorm.java import find_java

    try:
        find_java()
    except EnvironmentFault as fault:
        absent(str(fault))
    folder = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:
        options = ["--port", "0"]
        master, log = _start(stack, folder, "master", "master.Master", _LOOPBACK, *options)
        address = _wait_for(log, r"Starting Spark master at (spark://\S+)", master)
        workers = []
        for number, host in enumerate(_HOSTS):
            options = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work")]
            options.append(address)
            worker, log = _start(stack, folder, f"worker{number}", "worker.Worker", host, *options)
            _wait_for(log, r"(Successfully registered) with master", worker)
            workers.append(worker.pid)
        yield address, workers


def _start(
    stack: ExitStack, folder: Path, name: str, kind: str, host: str, *options: str
) -> tuple[subprocess.Popen[bytes], Path]:
    """Start a daemon of Spark, to be ended with the stack."""
    log = folder / f"{name}.log"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"SPARK_LOCAL_IP": host, "SPARK_HOME": str(_HOME)}
    command = [str(_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
    process = subprocess.Popen(
        [*command, "--host", host, "--webui-port", "0", *options],
        env=environment,
        stdout=stack.enter_context(log.open("wb")),
        stderr=subprocess.STDOUT,
        cwd=folder,
    )
    stack.callback(process.wait)
    stack.callback(process.terminate)
    return process, log


def _wait_for(log: Path, pattern: str, process: subprocess.Popen[bytes]) -> str:
    """Wait until a daemon has logged something."""
    never, deadline = threading.Event(), time.monotonic() + PATIENCE_SECS
    while True:
        text = log.read_text(errors="replace")
        if found := re.search(pattern, text):
            return found.group(1)
        assert process.poll() is None, text
        assert time.monotonic() < deadline, text
        never.wait(0.05)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """About 1 MB of the licence texts inside PySpark."""
    whole = b"\n".join(path.read_bytes() for path in sorted((_HOME / "licenses").glob("*.txt")))
    path = tmp_path_factory.mktemp("text") / "licences.txt"
    path.write_bytes((whole + b"\n") * (1_000_000 // len(whole) + 1))
    return path


def count_words(cluster: tuple[str, list[int]], text: Path, folder: Path, kill: bool) -> Any:
    """Run the driver program; return its answer."""
    master, workers = cluster
    result = folder / "result.json"
    pids = [str(pid) for pid in workers] if kill else []
    run_driver("count_words.py", master, str(text), str(result), *pids)
    return json.loads(result.read_text())


def run_driver(script: str, *arguments: str, **environment: str) -> None:
    """Run a driver program of this folder to its end."""
    source = str(Path(sparkstorm.__file__).parents[1])
    ours = {"PYTHONPATH": f"{source}:{_ROOT}", "SPARK_LOCAL_IP": _LOOPBACK}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script)), *arguments],
        env={**os.environ, **ours, **environment},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_SECS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]


@pytest.mark.parametrize(
    "kill",
    [
        pytest.param(False, marks=pytest.mark.slow, id="undisturbed"),
        pytest.param(True, id="killed"),
    ],
)
def test_word_count(cluster: tuple[str, list[int]], text: Path, tmp_path: Path, kill: bool) -> None:
    """The package is shipped and the counts are exact, also if an executor dies in a batch."""
    answer = count_words(cluster, text, tmp_path, kill)
    data = text.read_bytes().decode("utf-8", "replace")
    words = Counter(data.split())
    assert answer["drained"]
    assert len(answer["killed"]) == kill
    assert answer["counts"] == words
    assert answer["tapped"] == words.total()
    assert (answer["acked"], answer["failed"], answer["pending"]) == (data.count("\n"), 0, 0)
    assert answer["batches"] > 2


_SPECULATION = " ".join(
    f"--conf spark.speculation{key}"
    for key in ("=true", ".interval=50ms", ".multiplier=1.2", ".quantile=0.5", ".minTaskRuntime=1s")
)
_MESSAGES = {"kill": 8_000, "files": 8_000, "slow": 3_000}


def recompute(
    cluster: tuple[str, list[int]],
    folder: Path,
    how: str,
    *,
    messages: int,
    wild: bool = False,
    flaky: bool = False,
) -> tuple[Any, int]:
    """Run the numbers while Spark is disturbed; return the answer, and how many runs it repeated.

    The seed of the disturbances is printed, so that a failure shows it.
    """
    master, workers = cluster
    notes, result, seed = folder / "notes", folder / "result.json", random.randrange(2**32)
    notes.mkdir()
    spec = {
        "master": master,
        "workers": workers,
        "messages": messages,
        "folder": str(notes),
        "disturb": how,
        "seed": seed,
        "times": 4,
        "wild": wild,
        "flaky": flaky,
        "state_of": ["count", "again"] if flaky else [],
    }
    print(json.dumps(spec))  # noqa: T201 - pytest shows it if the test fails
    settings = {"PYSPARK_SUBMIT_ARGS": f"{_SPECULATION} pyspark-shell"} if how == "slow" else {}
    run_driver("recompute.py", json.dumps(spec), str(result), **settings)
    runs = Counter(tuple(path.name.split("-")[:3]) for path in notes.iterdir())
    return json.loads(result.read_text()), runs.total() - len(runs)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "files", "slow"])
def test_repeated_tasks_fail_no_tree(
    cluster: tuple[str, list[int]], tmp_path: Path, how: str
) -> None:
    """Executors killed in mid-stage, fetch failures, speculation: packets are the same again."""
    messages = _MESSAGES[how]
    answer, repeated = recompute(cluster, tmp_path, how, messages=messages)
    assert answer["drained"]
    assert answer["disturbed"] or how == "slow"
    assert repeated
    assert (answer["failed"], answer["retried"], answer["pending"]) == (0, 0, 0)
    assert answer["acked"] == messages
    assert Counter(map(tuple, answer["counted"])) == Counter((n, 1) for n in range(messages))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "files", "slow"])
def test_bolts_that_are_not_deterministic_lose_nothing(
    cluster: tuple[str, list[int]], tmp_path: Path, how: str
) -> None:
    """Routed at random, with the time in each tuple: what was acked was counted, and is committed.

    A tree that came apart may fail and be tried again, and is counted again then; none is lost.
    """
    messages = _MESSAGES[how]
    answer, repeated = recompute(cluster, tmp_path, how, messages=messages, wild=True)
    assert answer["drained"]
    assert repeated
    assert (answer["acked"], answer["pending"]) == (messages, 0)
    highest = dict.fromkeys(range(messages), 0)
    for number, count in answer["counted"]:
        assert count == highest[number] + 1  # as committed: no step is missing, none is doubled
        highest[number] = count
    assert min(highest.values()) >= 1
    assert sum(highest.values()) <= messages + answer["failed"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "files"])
def test_what_is_acked_is_in_the_state_that_is_committed(
    cluster: tuple[str, list[int]], tmp_path: Path, how: str
) -> None:
    """Bolts with state in a chain, each of which fails every hundredth number once.

    A run of a stage that Spark repeats need not fail what the first run has failed. What is lost
    with its batch is tried again, and is counted again by the bolt that had counted it.
    """
    messages = _MESSAGES[how]
    answer, repeated = recompute(cluster, tmp_path, how, messages=messages, flaky=True)
    assert answer["drained"]
    assert repeated
    assert (answer["acked"], answer["pending"]) == (messages, 0)
    for counted in answer["state"].values():
        counts = dict(counted)
        assert counts.keys() == set(range(messages))
        assert min(counts.values()) == 1
        assert sum(counts.values()) <= messages + answer["failed"]


@pytest.mark.slow
def test_a_message_that_takes_all_memory(cluster: tuple[str, list[int]], tmp_path: Path) -> None:
    """On workers with a limit it is given up, and all others go through."""
    result = tmp_path / "result.json"
    home = {"XDG_STATE_HOME": str(tmp_path)}
    run_driver("hoard.py", cluster[0], "2000", "777", str(result), **home)
    answer = json.loads(result.read_text())
    assert answer["drained"]
    assert (answer["acked"], answer["given_up"], answer["dead_letters"]) == (1_999, 1, 1)
    assert set(answer["failures"]) <= {"error", "lost"}
    assert set(answer["seen"]) == set(range(2_000)) - {777}
