"""A checkpoint of an earlier version, whose driver was killed: today's code goes on from it."""

import importlib.util
import re
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import pyspark.cloudpickle
import pytest

import sparkstorm as ss
from sparkstorm.checkpoint.files import LocalFiles
from sparkstorm.clock import SystemClock
from sparkstorm.dead_letters.requests import RequestBox
from sparkstorm.dead_letters.store import LetterStore
from sparkstorm.planning.plan import StreamKey
from sparkstorm.spark.driver.storage.kept_state import StateReader
from sparkstorm.state.view import Item, items_of

pytestmark = pytest.mark.spark

_PATIENCE_SECS = 120
_DATA = Path(__file__).parents[1] / "data"
_SPARK_PATH = re.compile(r'file:[^"]*/checkpoint/spark')


@pytest.fixture
def orders() -> Iterator[ModuleType]:
    """The topology that wrote the checkpoints; its classes are sent to the workers."""
    spec = importlib.util.spec_from_file_location("orders", _DATA / "orders.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "orders", module)
        for pickler in (cloudpickle, pyspark.cloudpickle):
            pickler.register_pickle_by_value(module)
        yield module
        for pickler in (cloudpickle, pyspark.cloudpickle):
            pickler.unregister_pickle_by_value(module)


@pytest.fixture(params=["memory", "rocksdb"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def checkpoint(backend: str, tmp_path: Path) -> Path:
    """A copy of the checkpoint that the earlier version left behind."""
    with tarfile.open(_DATA / f"checkpoint-{backend}.tar.gz") as packed:
        packed.extractall(tmp_path, filter="data")
    _move(tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


def _move(checkpoint: Path) -> None:
    """Spark notes the whole paths of its state's schemas; put in those of the new place."""
    for path in checkpoint.glob("spark/state/*/_metadata/v2/*"):
        path.write_text(_SPARK_PATH.sub(f"file:{checkpoint}/spark", path.read_text()))
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


class Seen:
    """The tuples of the taps, by component, in the order in which they came."""

    def __init__(self) -> None:
        self.tuples: dict[str, list[tuple[Any, ...]]] = {"judge": [], "count": [], "pair": []}

    def __call__(self, key: StreamKey, task: int, rows: list[tuple[Any, ...]]) -> None:
        self.tuples[key.component] += map(tuple, rows)

    def last(self, component: str) -> dict[str, tuple[Any, ...]]:
        """For each key the other values of its last tuple."""
        return {key: tuple(values) for key, *values in self.tuples[component]}


def items(reader: StateReader, component: str, tasks: int = 1) -> list[Item]:
    return [item for _, store in reader.chunks(component, tasks) for item in items_of(store)]


def test_the_state_of_an_earlier_version_can_be_shown(
    checkpoint: Path, backend: str, spark: Any
) -> None:
    """Attributes and held tuples; keys and values too, where they are in chunks."""
    reader = StateReader(spark, str(checkpoint), stages=2)
    (seen,) = items(reader, "judge")
    assert (seen.key, seen.value) == ("seen", {"word": 150, "left": 5})
    held = {item.key: item.value["kind"] for item in items(reader, "pair", tasks=2)}
    assert held == {f"p{number}": "left" for number in range(5)}
    values = [item.value for item in items(reader, "count", tasks=2) if item.space == ""]
    assert sum(value["count"] for value in values) == (150 if backend == "memory" else 0)


def test_a_topology_goes_on_from_the_checkpoint_of_an_earlier_version(
    orders: ModuleType, backend: str, checkpoint: Path, tmp_path: Path, spark: Any
) -> None:
    """Counts are exact, held tuples come again, the retry is made, the letter can be replayed."""
    rows = tmp_path / "rows.txt"
    rows.write_text("".join(f"{row}\n" for part in orders.parts() for row in part))
    letters = LetterStore(LocalFiles(checkpoint / "sparkstorm"))
    (letter,) = letters.letters()
    assert "poison is refused" in letter.failure.message
    RequestBox(letters).ask([letter], wall=SystemClock().wall())
    seen = Seen()
    run = ss.submit(
        orders.topology(rows),
        name="orders",
        config=orders.config(backend, retry_backoff_secs=0, lease_timeout_secs=1),
        session=spark,
        checkpoint=checkpoint,
        taps=list(seen.tuples),
        on_tap=seen,
    )
    try:
        assert run.wait_until_drained(_PATIENCE_SECS)
    finally:
        statistics = run.stop(drain=False)
    assert (statistics.failed, statistics.replayed, list(letters.letters())) == (0, 1, [])
    keys = Counter(row.split()[1] for part in orders.parts() for row in part if "word" in row)
    keys.update(["late", "stop", "poison"])
    counts = seen.last("count")
    assert {key: values[:3] for key, values in counts.items()} == {
        key: (count, count, count) for key, count in keys.items() if key in counts
    }
    assert counts.keys() == keys.keys()
    # The batch that the kill broke off keeps its time; in all after it the brief keys are gone.
    assert max(brief for *_, brief in counts.values()) <= 8
    assert seen.last("pair") == {f"p{number}": (1,) for number in range(5)}
    # The messages of held tuples were open, so their rows were read again: 5 and 5.
    assert max(seen.tuples["judge"], key=lambda row: row[-1])[-1] == 200
    assert max(row[-1] for row in seen.tuples["judge"] if row[0] == "left") == 10
