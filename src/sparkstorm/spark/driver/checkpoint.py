"""The checkpoint folder: our files beside Spark's part."""

from typing import Any, final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from sparkstorm.delivery.files import CheckpointFiles, LocalFiles
from sparkstorm.spark.internals import gateway_of, hadoop_configuration

__all__ = ["HadoopFiles", "open_files"]


def open_files(location: str, session: SparkSession) -> CheckpointFiles:
    """Return the place for our files in a checkpoint, local or on any of Hadoop's file systems."""
    local = LocalFiles.of_checkpoint(location)
    if local is not None:
        return local.make()
    return HadoopFiles(session, f"{location.rstrip('/')}/sparkstorm")


@final
class HadoopFiles:
    """Files on any file system that Hadoop knows (HDFS, S3, …), through the driver's JVM.

    Whether ``write`` is atomic and ``create`` exclusive is up to that file system: HDFS is both.
    """

    def __init__(self, session: SparkSession, folder: str) -> None:
        gateway = gateway_of(session.sparkContext)
        self._jvm: Any = gateway.jvm
        conf = hadoop_configuration(session.sparkContext)
        hadoop: Any = self._jvm.org.apache.hadoop.fs
        self._folder = folder
        self._fs: Any = self._path("").getFileSystem(conf)
        # FileSystem's own rename does not replace
        self._context: Any = hadoop.FileContext.getFileContext(self._path("").toUri(), conf)
        self._replace: Any = gateway.new_array(hadoop.Options.Rename, 1)
        self._replace[0] = getattr(hadoop, "Options$Rename").OVERWRITE

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
        """Write a file aside and rename it into place."""
        aside = self._path(f"{name}.new")
        self._put(aside, data, replace=True)
        self._context.rename(aside, self._path(name), self._replace)

    def create(self, name: str, data: bytes) -> bool:
        """Write a file that is not there yet; returns False if it is."""
        try:
            self._put(self._path(name), data, replace=False)
        except Py4JJavaError as error:
            if "FileAlreadyExistsException" in error.java_exception.toString():
                return False
            raise
        return True

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

    def _put(self, path: Any, data: bytes, *, replace: bool) -> None:
        stream = self._fs.create(path, replace)
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(
            f"{self._folder}/{name}" if name else self._folder
        )
