"""What Spark's own logs say of its batches, also after a power failure."""

import pytest

from sparkstorm.checkpoint.engine_log import EngineLog
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.errors import CheckpointError
from sparkstorm.spark.driver.storage.spark_log import read_spark_log

OFFSET = b'v1\n{"batchWatermarkMs":0,"conf":{}}\n{"batch": 6}'
COMMIT = b'v2\n{"nextBatchWatermarkMs":0}'


def logs(heard: int, committed: int, **damaged: bytes) -> MemoryFiles:
    """Logs with so many files, the newest of each perhaps damaged."""
    files = MemoryFiles()
    for folder, count, data in (("offsets", heard, OFFSET), ("commits", committed, COMMIT)):
        for number in range(count):
            newest = number == count - 1
            files.write(f"{folder}/{number}", damaged.get(folder, data) if newest else data)
    return files


def test_the_newest_of_each_counts() -> None:
    """By number, not by letter; what is not a number is none of them."""
    files = logs(12, 11)
    files.write("offsets/12.bak", b"")
    assert read_spark_log(files) == EngineLog(heard=11, committed=10)


def test_a_new_checkpoint_has_none() -> None:
    assert read_spark_log(MemoryFiles()) == EngineLog(heard=-1, committed=-1)


@pytest.mark.parametrize("cut", [0, 1, len(COMMIT) // 2, len(COMMIT) - 1])
def test_a_commit_that_was_cut_is_named(cut: int) -> None:
    with pytest.raises(CheckpointError, match=r"file spark/commits/2 is damaged.*Delete the file"):
        read_spark_log(logs(3, 3, commits=COMMIT[:cut]))


@pytest.mark.parametrize("cut", [0, 1, len(OFFSET) // 2, len(OFFSET) - 1])
@pytest.mark.parametrize(("committed", "mend"), [(2, "Delete the file"), (3, "Restore the whole")])
def test_an_offset_that_was_cut_is_named(cut: int, committed: int, mend: str) -> None:
    """It can be done without as long as its batch is not committed."""
    with pytest.raises(CheckpointError, match=rf"file spark/offsets/2 is damaged.*{mend}"):
        read_spark_log(logs(3, committed, offsets=OFFSET[:cut]))
