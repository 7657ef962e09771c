"""What a power failure may take of a checkpoint's two parts: found before the query starts."""

from pathlib import Path
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.spouts import LinesSpout
from sparkstorm.testing import PATIENCE_SECS

pytestmark = pytest.mark.spark

_LINES = 30


def lines(folder: Path, spark: Any) -> Any:
    """Read a file in batches of ten lines."""
    (folder / "lines.txt").write_text("".join(f"{n}\n" for n in range(_LINES)))
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", LinesSpout(folder / "lines.txt"))
    return ss.submit(
        builder.create_topology(),
        name="damage",
        session=spark,
        checkpoint=folder / "checkpoint",
        config={"batch_min_messages": 10, "batch_max_messages": 10},
    )


def newest(folder: Path) -> Path:
    """The file of the highest number in one of Spark's logs."""
    return max((p for p in folder.iterdir() if p.name.isdecimal()), key=lambda p: int(p.name))


def test_a_start_names_what_is_damaged_and_goes_on_when_that_is_mended(
    spark: Any, tmp_path: Path
) -> None:
    with lines(tmp_path, spark) as run:
        assert run.wait_until_drained(PATIENCE_SECS)
        acked = run.statistics().acked
    assert acked == _LINES
    checkpoint = tmp_path / "checkpoint"
    commits, offsets = (checkpoint / "spark" / name for name in ("commits", "offsets"))
    plans = (checkpoint / "sparkstorm/plans").iterdir()
    plan = max(plans, key=lambda path: int(path.name.partition("-")[2]))
    whole, commit, offset = plan.read_bytes(), newest(commits), newest(offsets)
    last = {path: path.read_bytes() for path in (plan, commit, offset)}

    def refused(words: str) -> None:
        with pytest.raises(ss.CheckpointError, match=words):
            lines(tmp_path, spark)
        assert spark.streams.active == []
        for path, data in last.items():
            path.write_bytes(data)

    plan.write_bytes(whole[: len(whole) // 2])
    refused(rf"plans/{plan.name} is damaged")
    commit.write_bytes(b"")
    refused(rf"spark/commits/{commit.name} is damaged.*Delete the file")
    offset.write_bytes(b"")
    refused(rf"spark/offsets/{offset.name} is damaged.*Restore")
    commit.unlink()
    refused(rf"batch {commit.name} was committed and its messages have their verdicts")
    with lines(tmp_path, spark) as run:
        assert run.wait_until_drained(PATIENCE_SECS)
        assert run.statistics().acked == 0
