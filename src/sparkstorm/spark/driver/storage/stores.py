"""The kinds of file systems, by how a file is created and replaced.

Leases and plans rest on this.
"""

from collections.abc import Callable
from enum import Enum
from typing import final

from sparkstorm.errors import CheckpointError

__all__ = ["CONDITIONAL_CREATE", "Store", "store_of"]

CONDITIONAL_CREATE = "fs.option.create.conditional.overwrite"
"""Hadoop's option to create a file only if there is none; the file appears at close.

An option of ``createFile``, and a capability of file systems that have the option: S3A since
Hadoop 3.4.2.
"""

_HIERARCHICAL = "fs.capability.etags.preserved.in.rename"
"""A capability of ABFS in accounts with a hierarchical namespace, and in no others."""


@final
class Store(Enum):
    """The kinds of file systems on which, of two drivers creating a file, the second is refused."""

    CONDITIONAL = "a file appears whole when it is closed, under a condition if asked for"
    GENERATIONS = "a file appears whole when it is closed, and is only replaced if it is known"
    RENAMES = "a rename replaces a file in one step"
    RENAMES_TO_NEW = "a rename is one step if nothing is there"


def store_of(scheme: str, location: str, is_capable_of: Callable[[str], bool]) -> Store:
    """Return the kind of a file system.

    Args:
        scheme: the scheme of its URLs.
        location: the checkpoint, as people name it.
        is_capable_of: asks the file system for a capability at that place, by Hadoop's name.

    Raises:
        CheckpointError: two drivers might hold one checkpoint there.
    """
    if is_capable_of(CONDITIONAL_CREATE):
        return Store.CONDITIONAL
    if scheme == "gs":  # both connectors write with a condition on the object's generation
        return Store.GENERATIONS
    if scheme == "hdfs":
        return Store.RENAMES
    if scheme in ("abfs", "abfss") and is_capable_of(_HIERARCHICAL):
        return Store.RENAMES_TO_NEW
    raise CheckpointError(
        f"the checkpoint {location} cannot be kept safe: on {scheme}://, as it is set up, of two "
        f"drivers that create a file at once both may believe to have done so, and both would run "
        f"the topology. Use a local folder; hdfs://; s3a:// of Hadoop 3.4.2 or newer with "
        f"spark.hadoop.fs.s3a.create.conditional.enabled=true; gs://; or abfss:// in an account "
        f"with a hierarchical namespace"
    )
