"""Java: the program behind Spark and behind servers in jars."""

import os
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

from sparkstorm.errors import EnvironmentFault

__all__ = ["find_java", "is_hotspot"]

_OLDEST = 17


def find_java() -> str:
    """Return the Java program: from JAVA_HOME, or else the first on the PATH.

    Raises:
        EnvironmentFault: there is no Java, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "no java on the PATH"
        raise EnvironmentFault(
            f"Spark needs Java {_OLDEST} or later, but {where}: install a Java runtime, for "
            f"example Debian's openjdk-17-jre-headless, or set JAVA_HOME"
        )
    version = _version_of(java)
    if version is not None and version < _OLDEST:
        raise EnvironmentFault(
            f"Spark needs Java {_OLDEST} or later, but {java} is version {version}: install a "
            f"newer one or set JAVA_HOME"
        )
    return java


def is_hotspot(java: str) -> bool:
    """Whether a Java is HotSpot, as nearly all are, and takes HotSpot's options."""
    told = _told_by(java)
    return "HotSpot" in told or "OpenJDK 64-Bit Server VM" in told


@lru_cache
def _told_by(java: str) -> str:
    result = subprocess.run(  # noqa: S603 - the user's own Java
        [java, "-version"], capture_output=True, text=True, check=False
    )
    return result.stderr or result.stdout


def _version_of(java: str) -> int | None:
    # The first line quotes the version: openjdk version "17.0.2", or "1.8.0_292" up to Java 8.
    words = _told_by(java).split('"')
    numbers = words[1].split(".") if len(words) > 1 else []
    digits = [int(part) for part in numbers[:2] if part.isdigit()]
    if not digits:
        return None
    return digits[1] if digits[0] == 1 and len(digits) > 1 else digits[0]
