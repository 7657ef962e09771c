"""The checkpoint folder: our files beside Spark's part."""

from pathlib import Path
from typing import Any, final

from pyspark.sql import SparkSession

from sparkstorm.delivery.files import CheckpointFiles, LocalFiles
from sparkstorm.errors import CheckpointError

__all__ = ["HadoopFiles", "open_files"]


def open_files(location: str, session: SparkSession) -> CheckpointFiles:
    """Return the place for our files in a checkpoint, local or on any of Hadoop's file systems."""
    if "://" in location and not location.startswith("file:"):
        return HadoopFiles(session, f"{location.rstrip('/')}/sparkstorm")
    path = location.removeprefix("file://").removeprefix("file:")
    return LocalFiles(Path(path) / "sparkstorm").make()


@final
class HadoopFiles:
    """Files on any file system that Hadoop knows (HDFS, S3, …), through the driver's JVM."""

    def __init__(self, session: SparkSession, folder: str) -> None:
        self._jvm: Any = session.sparkContext._jvm  # noqa: SLF001 - there is no public way
        conf: Any = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
        self._folder = folder
        self._fs: Any = self._path("").getFileSystem(conf)

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None if there is none."""
        path = self._path(name)
        if not self._fs.exists(path):
            return None
        stream = self._fs.open(path)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def write(self, name: str, data: bytes) -> None:
        """Write a file aside and rename it into place.

        Hadoop's rename does not replace, so between the two the name is missing for a moment.
        """
        aside = self._path(f"{name}.new")
        stream = self._fs.create(aside, True)
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()
        self.delete(name)
        if not self._fs.rename(aside, self._path(name)):
            raise CheckpointError(f"cannot rename {name}.new to {name} in {self._folder}")

    def delete(self, name: str) -> None:
        """Delete a file if it is there."""
        self._fs.delete(self._path(name), False)

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, sorted."""
        path = self._path(folder)
        if not self._fs.exists(path):
            return []
        found = [status.getPath().getName() for status in self._fs.listStatus(path)]
        return sorted(name for name in found if not name.endswith(".new"))

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(
            f"{self._folder}/{name}" if name else self._folder
        )
