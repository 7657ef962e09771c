"""Say in one sentence what this machine lacks: ``check_prerequisites.py [java]``.

It is started by whatever Python there is, so it uses nothing that came after Python 3.5.
"""

import os
import re
import shutil
import subprocess
import sys

OLDEST_PYTHON = (3, 11)
OLDEST_JAVA = 17


def python_fault():
    """Return what is wrong with the Python that runs this, or None."""
    if sys.version_info < OLDEST_PYTHON:
        return (
            "sparkstorm needs Python {}.{} or newer, but {} is {}.{}: "
            "install a newer one and name it, as in `make setup PYTHON=python3.12`."
        ).format(*OLDEST_PYTHON, sys.executable, *sys.version_info[:2])
    try:
        import ensurepip  # noqa: F401 - Debian splits both off into python3-venv
        import venv  # noqa: F401
    except ImportError:
        return (
            "{} cannot make virtual environments: install its venv module "
            "(on Debian and Ubuntu: `apt-get install python3-venv`)."
        ).format(sys.executable)
    return None


def java_fault():
    """Return what is wrong with the Java that Spark would use, or None."""
    wanted = "Spark needs Java {} or newer".format(OLDEST_JAVA)
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None:
        return (
            "{}, but there is no `java` on the PATH and JAVA_HOME is not set: install one "
            "(on Debian and Ubuntu: `apt-get install openjdk-17-jre-headless`)."
        ).format(wanted)
    try:
        told = subprocess.check_output([java, "-version"], stderr=subprocess.STDOUT)
    except (OSError, subprocess.CalledProcessError):
        where = "JAVA_HOME is {}, but ".format(home) if home else ""
        return "{}: {}{} does not run; install Java or set JAVA_HOME.".format(wanted, where, java)
    version = java_version(told.decode("utf-8", "replace"))
    if version is not None and version < OLDEST_JAVA:
        return (
            "{}, but {} is Java {}: install a newer one and set JAVA_HOME to its directory."
        ).format(wanted, java, version)
    return None


def java_version(told):
    """Return the major version in what ``java -version`` told, or None if it can't be read."""
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(found.group(1)) if found else None


def main(wanted):
    """Check Python, and Java too if ``wanted`` names it; return the exit code."""
    faults = [python_fault(), java_fault() if "java" in wanted else None]
    for fault in faults:
        if fault is not None:
            sys.stderr.write(fault + "\n")
    return 1 if any(faults) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
