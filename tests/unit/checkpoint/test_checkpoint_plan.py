"""What can be known of a checkpoint before Spark runs."""

from collections.abc import Mapping
from pathlib import Path

import pytest

import sparkstorm as ss
from sparkstorm.checkpoint.files import LocalFiles
from sparkstorm.checkpoint.fitting_plan import check_ahead, plan_on_checkpoint
from sparkstorm.checkpoint.manifest import Manifest
from sparkstorm.testing import FeederSpout


def topology() -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", FeederSpout("n int"))
    return builder.create_topology()


def begin(folder: Path, partitions: int = 3) -> None:
    """Leave what a run would that began there."""
    files = LocalFiles.of_checkpoint(str(folder))
    assert files is not None
    plan = plan_on_checkpoint(
        topology(), files, str(folder), name="mine", config=ss.Config(), partitions=partitions
    )
    assert plan.partitions == partitions
    Manifest.of(plan).write(files)


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_a_checkpoint_is_held_against_its_topology(tmp_path: Path, prefix: str) -> None:
    """Its own may go on, with the partitions that it was made with; another may not."""
    begin(tmp_path)
    where = f"{prefix}{tmp_path}"
    check_ahead(topology(), where, name="mine", config=ss.Config())
    with pytest.raises(ss.CheckpointError, match="belongs to the topology 'mine', not to 'other'"):
        check_ahead(topology(), where, name="other", config=ss.Config())
    files = LocalFiles.of_checkpoint(where)
    assert files is not None
    config = ss.Config()
    plan = plan_on_checkpoint(topology(), files, where, name="mine", config=config, partitions=8)
    assert plan.partitions == 3


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """It would only be found once Spark runs."""
    (tmp_path / "file").touch()
    with pytest.raises(ss.CheckpointError, match=r"cannot make the folder .*/file/sparkstorm"):
        check_ahead(topology(), str(tmp_path / "file"), name="mine", config=ss.Config())


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"name": "../mine"}, id="name"),
        pytest.param({"name": 129 * "m"}, id="long name"),
        pytest.param({"taps": ["nobody"]}, id="tap"),
    ],
)
def test_nothing_is_made_for_a_run_that_cannot_be(
    tmp_path: Path, wrong: Mapping[str, object]
) -> None:
    """Settings are looked at first."""
    options = {"name": "mine", "config": ss.Config(), **wrong}
    with pytest.raises(ss.SparkstormError):
        check_ahead(topology(), str(tmp_path / "new"), **options)  # type: ignore[arg-type]
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["", "  "])
def test_a_checkpoint_without_a_name_is_refused(name: str) -> None:
    """Perhaps a variable of the shell that is not set: it would be two folders, one the root's."""
    with pytest.raises(ss.CheckpointError, match="the checkpoint's name is empty"):
        check_ahead(topology(), name, name="mine", config=ss.Config())


def test_what_only_spark_reaches_is_left_to_it() -> None:
    """No folder of that name is made here either."""
    check_ahead(topology(), "hdfs://host/folder", name="mine", config=ss.Config())
    assert LocalFiles.of_checkpoint("hdfs://host/folder") is None
    assert not Path("hdfs:").exists()
