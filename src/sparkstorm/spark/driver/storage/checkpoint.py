"""The checkpoint folder: sparkstorm's files beside Spark's part."""

from typing import Any, final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from sparkstorm.checkpoint.files import CheckpointFiles, LocalFiles
from sparkstorm.errors import CheckpointError
from sparkstorm.spark.driver.storage.stores import CONDITIONAL_CREATE, Store, store_of
from sparkstorm.spark.internals import gateway_of, hadoop_configuration

__all__ = ["HadoopFiles", "open_files", "open_spark_files"]

_PROBE = "lease/probe"
"""No lease has this name: leases are numbered."""


def open_files(location: str, session: SparkSession, *, fsync: bool = True) -> CheckpointFiles:
    """Return sparkstorm's part of a checkpoint, local or on any of Hadoop's file systems.

    Raises:
        CheckpointError: the folder cannot be opened, or its file system cannot keep two drivers
            apart.
    """
    local = LocalFiles.of_checkpoint(location, fsync=fsync)
    if local is not None:
        return local.make()
    files = HadoopFiles(session, f"{location.rstrip('/')}/sparkstorm", location=location)
    files.check_exclusive()
    return files


def open_spark_files(location: str, session: SparkSession) -> CheckpointFiles:
    """Return Spark's part of a checkpoint, for reading."""
    local = LocalFiles.of_checkpoint(location, folder="spark")
    return local or HadoopFiles(session, f"{location.rstrip('/')}/spark", location=location)


@final
class HadoopFiles:
    """Files on any file system that Hadoop knows (HDFS, S3, …), through the driver's JVM.

    Args:
        session: any session.
        folder: the folder's URL.
        store: the kind of the file system; if None, the file system is asked.
        location: the checkpoint, as people name it.

    Raises:
        CheckpointError: the file system cannot keep two drivers apart.
    """

    def __init__(
        self, session: SparkSession, folder: str, *, store: Store | None = None, location: str = ""
    ) -> None:
        gateway = gateway_of(session.sparkContext)
        self._jvm: Any = gateway.jvm
        conf = hadoop_configuration(session.sparkContext)
        hadoop: Any = self._jvm.org.apache.hadoop.fs
        self._folder = folder
        self._location = location or folder
        try:
            self._fs: Any = self._path("").getFileSystem(conf)
            self._store = store or store_of(
                self._fs.getUri().getScheme(), self._location, self._is_capable_of
            )
        except Py4JJavaError as error:
            raise CheckpointError(
                f"the checkpoint {self._location} cannot be opened: "
                f"{error.java_exception.toString()}. Give Spark the jars of that file system "
                f"(spark.jars.packages) and its settings (spark.hadoop.…), or another checkpoint"
            ) from error
        if self._store is Store.RENAMES:  # FileSystem's own rename does not replace
            self._context: Any = hadoop.FileContext.getFileContext(self._path("").toUri(), conf)
            self._replace: Any = gateway.new_array(hadoop.Options.Rename, 1)
            self._replace[0] = getattr(hadoop, "Options$Rename").OVERWRITE

    def check_exclusive(self) -> None:
        """Try whether a store obeys conditions: some stores that speak S3 accept and ignore them.

        Raises:
            CheckpointError: the store does not obey.
        """
        if self._store is not Store.CONDITIONAL:
            return
        if self.create(_PROBE, b"") and self.create(_PROBE, b""):
            raise CheckpointError(
                f"the checkpoint {self._location} cannot be kept safe: the store lets a file that "
                f"is there be created once more although it was told not to (If-None-Match), so "
                f"two drivers might run the topology at once. Use a newer store, a local folder "
                f"or hdfs://"
            )

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None if there is no such file."""
        found = next((p for p in self._places(name) if self._fs.exists(p)), None)
        if found is None:
            return None
        stream = self._fs.open(found)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def write(self, name: str, data: bytes, *, lasting: bool = True) -> None:
        """Write a file atomically. A ``lasting`` file also outlives a power failure."""
        path, aside = self._path(name), self._path(f"{name}.new")
        if self._store in (Store.CONDITIONAL, Store.GENERATIONS):
            self._put(self._fs.create(path, True), data)
            return
        self._put(self._fs.create(aside, True), data, synced=lasting)
        if self._store is Store.RENAMES:
            self._context.rename(aside, path, self._replace)
        else:
            self._replace_in_steps(name, aside, path)

    def create(self, name: str, data: bytes) -> bool:
        """Write a new file; return False if a file of the name exists."""
        path = self._path(name)
        try:
            self._put(self._created(path), data, synced=self._renames)
        except Py4JJavaError:  # stores raise different exceptions, in create or in close
            if not self._fs.exists(path):
                raise
            return False
        return True

    def delete(self, name: str) -> None:
        """Delete a file, if there is one."""
        for path in reversed(self._places(name)):
            self._fs.delete(path, False)

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, sorted."""
        path = self._path(folder)
        if not self._fs.exists(path):
            return []
        found = [status.getPath().getName() for status in self._fs.listStatus(path)]
        whole = (name.removesuffix(".whole") for name in found if not name.endswith(".new"))
        return sorted(set(whole))

    @property
    def _renames(self) -> bool:
        return self._store in (Store.RENAMES, Store.RENAMES_TO_NEW)

    def _replace_in_steps(self, name: str, aside: Any, path: Any) -> None:
        """Replace a file where that takes more than one step.

        After a crash between any two steps the old or the new file is found (:meth:`_places`).
        """
        steps = [(aside, path)]
        if self._fs.exists(path):
            whole = self._path(f"{name}.whole")
            self._fs.delete(whole, False)
            self._rename(aside, whole)
            self._fs.delete(path, False)
            steps = [(whole, path)]
        for step in steps:
            self._rename(*step)

    def _rename(self, source: Any, target: Any) -> None:
        if not self._fs.rename(source, target):
            raise OSError(f"{source.toString()} could not be renamed to {target.toString()}")

    def _places(self, name: str) -> list[Any]:
        """Return where a file may lie; the second place holds an unfinished replacement.

        If both exist, the first is the older file, and the replacement counts as not begun.
        """
        names = [name]
        if self._store is Store.RENAMES_TO_NEW:
            names.append(f"{name}.whole")
        return [self._path(each) for each in names]

    def _created(self, path: Any) -> Any:
        """Return the stream of a file that must not exist yet."""
        if self._store is Store.CONDITIONAL:
            return self._fs.createFile(path).must(CONDITIONAL_CREATE, "true").recursive().build()
        return self._fs.create(path, False)

    def _put(self, stream: Any, data: bytes, *, synced: bool = False) -> None:
        try:
            stream.write(bytearray(data))
            if synced and stream.hasCapability("hsync"):
                stream.hsync()
        finally:
            stream.close()

    def _is_capable_of(self, capability: str) -> bool:
        return bool(self._fs.hasPathCapability(self._path(""), capability))

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(
            f"{self._folder}/{name}" if name else self._folder
        )
