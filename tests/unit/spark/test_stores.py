"""Which file systems a checkpoint may be on."""

import pytest

from sparkstorm.errors import CheckpointError
from sparkstorm.spark.driver.storage.stores import CONDITIONAL_CREATE, Store, store_of

HIERARCHICAL = "fs.capability.etags.preserved.in.rename"


@pytest.mark.parametrize(
    ("scheme", "capabilities", "store"),
    [
        ("hdfs", set(), Store.RENAMES),
        ("gs", set(), Store.GENERATIONS),
        ("s3a", {CONDITIONAL_CREATE}, Store.CONDITIONAL),
        ("of-a-vendor", {CONDITIONAL_CREATE}, Store.CONDITIONAL),
        ("abfs", {HIERARCHICAL}, Store.RENAMES_TO_NEW),
        ("abfss", {HIERARCHICAL}, Store.RENAMES_TO_NEW),
    ],
)
def test_a_store_is_known_by_scheme_and_capability(
    scheme: str, capabilities: set[str], store: Store
) -> None:
    assert store_of(scheme, "here", capabilities.__contains__) is store


@pytest.mark.parametrize("scheme", ["s3a", "s3", "s3n", "abfss", "wasb", "file", "viewfs", "ftp"])
def test_any_other_is_refused_and_the_ways_on_are_named(scheme: str) -> None:
    """Without its capability S3A looks first and then writes, and so do most others."""
    words = rf"{scheme}://b/c cannot.*{scheme}://, as.*local folder; hdfs://; s3a://.*conditional"
    with pytest.raises(CheckpointError, match=words):
        store_of(scheme, f"{scheme}://b/c", lambda capability: False)
