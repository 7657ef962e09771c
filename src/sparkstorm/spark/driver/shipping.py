"""Give executors missing Python modules: the package, and the script's folder."""

import atexit
import os
import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from sparkstorm.checkpoint.scratch import make_folder
from sparkstorm.spark.driver.session import is_local

__all__ = ["offer_script_folder", "ship"]

_SHIPPED: set[str] = set()


def offer_script_folder() -> None:
    """Let local workers import modules from the folder of the running script.

    Call this function before Spark starts: Spark's processes take the path from the environment.
    """
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script is None:
        return
    folder = str(Path(script).resolve().parent)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if folder not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([*filter(None, paths), folder])


def ship(session: SparkSession) -> None:
    """Send the package to the executors, once per Spark application.

    Local mode needs no sending.
    """
    context = session.sparkContext
    if is_local(str(context.master)) or context.applicationId in _SHIPPED:
        return
    package = Path(__file__).parents[2]
    folder = make_folder("ship")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = shutil.make_archive(
        str(folder / "sparkstorm"),
        "zip",
        root_dir=package.parent,
        base_dir=package.name,
    )
    context.addPyFile(archive)
    _SHIPPED.add(str(context.applicationId))
