"""Build the wheel and the source archive, and check both in a fresh virtual environment.

``make release-check`` starts it, with the Python of ``.venv``. It needs the package index for the
locked dependencies, and no Java.
"""

import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from tarfile import TarFile
from tempfile import TemporaryDirectory
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
IN_WHEEL = ("sparkstorm/py.typed", "sparkstorm/cli/starter/topology.py.tmpl")
IN_ARCHIVE = ("LICENSE", "README.md", "hatch_build.py", "tests/conftest.py", "docs/quickstart.md")


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a program and return what it printed; end with its last words if it fails."""
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def faults_of(version: str, wheel: Path, archive: Path) -> Iterator[str]:
    """Yield what is wrong with the files that were built, as sentences."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if f"## [{version}]" not in changes:
        yield f"CHANGELOG.md has no section [{version}]"
    with ZipFile(wheel) as packed:
        names = packed.namelist()
    yield from (f"{wheel.name} lacks {name}" for name in IN_WHEEL if name not in names)
    yield from (
        f"{wheel.name} has {name}" for name in names if not re.match("sparkstorm[/-]", name)
    )
    with TarFile.open(archive) as packed_source:
        inside = {name.partition("/")[2] for name in packed_source.getnames()}
    yield from (f"{archive.name} lacks {name}" for name in IN_ARCHIVE if name not in inside)


def check_installed(python: Path, version: str, folder: Path) -> None:
    """Use what is installed as a newcomer would: ask for its version, start a project, test it."""
    run(python, "-m", "pip", "check")
    told = run(python, "-m", "sparkstorm", "--version", cwd=folder)
    if version not in told:
        raise SystemExit(f"the installed version is {told.strip()}, not {version}")
    run(python, "-m", "sparkstorm", "new", "project", cwd=folder)
    run(python, "-m", "pytest", "-q", cwd=folder / "project")


def main() -> None:
    """Build both files, look into them, and use each in the same fresh environment."""
    for old in DIST.glob("sparkstorm-*"):
        old.unlink()
    run(sys.executable, "-m", "hatchling", "build", "-d", DIST)
    [wheel], [archive] = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    version = wheel.name.split("-")[1]
    if faults := list(faults_of(version, wheel, archive)):
        raise SystemExit("\n".join(faults))
    with TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=True)
        python = Path(scratch) / "bin/python"
        install = (python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
        # In the order of `make setup`: PySpark is built from source, without isolation.
        run(*install, "--require-hashes", "-r", ROOT / "requirements-build.lock")
        run(*install, "--no-build-isolation", "--require-hashes", "-r", ROOT / "requirements.lock")
        for built in (wheel, archive):
            run(*install, "--no-deps", "--no-build-isolation", "--force-reinstall", built)
            folder = Path(scratch) / built.suffix.strip(".")
            folder.mkdir()
            check_installed(python, version, folder)
            print(f"{built.name} is well")


if __name__ == "__main__":
    main()
