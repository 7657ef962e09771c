"""What the executors need of us: the package itself, on a cluster whose Python lacks it."""

import shutil
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

__all__ = ["ship"]

_SHIPPED: set[str] = set()


def ship(session: SparkSession) -> None:
    """Send the package to the executors, once per Spark application; local mode has it already."""
    context = session.sparkContext
    if str(context.master).startswith("local[") or context.applicationId in _SHIPPED:
        return
    package = Path(__file__).parents[2]
    archive = shutil.make_archive(
        str(Path(tempfile.mkdtemp(prefix="sparkstorm-ship-")) / "sparkstorm"),
        "zip",
        root_dir=package.parent,
        base_dir=package.name,
    )
    context.addPyFile(archive)
    _SHIPPED.add(str(context.applicationId))
