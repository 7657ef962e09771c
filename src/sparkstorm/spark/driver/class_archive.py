"""The class archive: Java's own copy of Spark's classes, loaded, for quicker starts.

Spark loads 21,000 classes before its first batch, and Java spends a third of the start on that.
Java can write the loaded classes into an archive (application class-data sharing) and map the
archive into memory at the next start. Java refuses an archive of another Java, or of other jars, by
itself; the name has both in it, so that it need not. Nothing depends on the archive: it may be
removed at any time.
"""

import hashlib
import os
from pathlib import Path
from typing import Any, final

import pyspark

from sparkstorm.java import is_hotspot
from sparkstorm.spark.internals import gateway_of

__all__ = ["SWITCH", "ClassArchive"]

SWITCH = "SPARKSTORM_CLASS_ARCHIVE"
"""The environment variable that turns the archive off (``off``), or names its folder."""

_MOST = 3
"""How many archives are kept; each has some 130 MB."""

_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")
"""Without these Java prints a warning if it does not take an archive."""


@final
class ClassArchive:
    """The archive for a Java and the jars of this PySpark.

    Args:
        folder: where archives are kept.
        java: the Java program.
    """

    def __init__(self, folder: Path, java: str) -> None:
        self._path = folder / f"classes-{_key(java)}.jsa"

    @classmethod
    def find(cls, java: str) -> "ClassArchive | None":
        """Return the archive for a Java; None if there can be none, or the user wants none."""
        wish = os.environ.get(SWITCH, "")
        if wish.lower() in ("off", "0", "false", "no") or not is_hotspot(java):
            return None
        folder = Path(wish) if wish else _cache() / "sparkstorm"
        return cls(folder, java)

    @property
    def name(self) -> str:
        """The name of the file."""
        return self._path.name

    @property
    def exists(self) -> bool:
        """Whether there is an archive to start with."""
        return os.access(self._path, os.R_OK)

    @property
    def can_be_made(self) -> bool:
        """Whether the archive is missing, and its folder can be written."""
        folder = next(one for one in (self._path.parent, *self._path.parents) if one.exists())
        return not self.exists and folder.is_dir() and os.access(folder, os.W_OK)

    def options(self) -> list[str]:
        """Return the options that make Java use the archive, or get ready to write one."""
        if self.exists:
            return [f"-XX:SharedArchiveFile={self._path}", *_QUIET]
        return ["-XX:+RecordDynamicDumpInfo", *_QUIET] if self.can_be_made else []

    def make(self, session: Any) -> bool:
        """Write the classes that a session's JVM has loaded, which takes seconds; return whether.

        Another process may do the same at the same time: the last one's archive stays.
        """
        if not self.can_be_made:
            return False
        part = self._path.with_suffix(f".{os.getpid()}.part")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            for rest in self._path.parent.glob("*.part"):  # of a process that was killed meanwhile
                rest.unlink(missing_ok=True)
            _dump_classes(session, part)
            part.replace(self._path)
            self._tidy()
        except Exception:  # noqa: BLE001 - whatever Java has against it, the next start is slower
            part.unlink(missing_ok=True)
            return False
        return True

    def _tidy(self) -> None:
        """Remove all but the newest archives: each new environment has jars of its own."""
        found = [*self._path.parent.glob("classes-*.jsa")]
        for old in sorted(found, key=lambda path: path.stat().st_mtime)[:-_MOST]:
            old.unlink(missing_ok=True)


def _dump_classes(session: Any, path: Path) -> None:
    """Call ``jcmd VM.cds dynamic_dump`` by its bean; a Java without tools has no ``jcmd``."""
    gateway = gateway_of(session.sparkContext)
    java = gateway.jvm.java.lang
    arguments = _array(gateway, java.String, "dynamic_dump", str(path))
    bean = gateway.jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand")
    types = _array(gateway, java.String, "[Ljava.lang.String;")
    call = _array(
        gateway, java.Object, bean, "vmCds", _array(gateway, java.Object, arguments), types
    )
    server = java.management.ManagementFactory.getPlatformMBeanServer()
    # py4j does not see the methods of the server's class, which is not public.
    methods = java.Class.forName("javax.management.MBeanServer").getMethods()
    invoke = next(method for method in methods if method.getName() == "invoke")
    invoke.invoke(server, call)


def _array(gateway: Any, kind: Any, *values: Any) -> Any:
    array = gateway.new_array(kind, len(values))
    for place, value in enumerate(values):
        array[place] = value
    return array


def _key(java: str) -> str:
    """Return a name for a Java and the jars that it will load."""
    home = Path(java).resolve().parent.parent
    jars = Path(os.environ.get("SPARK_HOME", Path(pyspark.__file__).parent)) / "jars"
    digest = hashlib.sha256(str(home).encode())
    for path in (home / "release", *sorted(jars.glob("*.jar"))):
        if path.exists():
            seen = path.stat()
            digest.update(f"{path} {seen.st_size} {seen.st_mtime_ns}\n".encode())
    return f"{pyspark.__version__}-{digest.hexdigest()[:12]}"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
