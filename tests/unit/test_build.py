"""What is compiled when the package is built, and what happens where it cannot be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPILE = (
    "import sys, pathlib, hatch_build as b; print(b.compile_modules(pathlib.Path(sys.argv[1])))"
)


@pytest.mark.process
def test_without_a_c_compiler_all_stays_python(tmp_path: Path) -> None:
    """One sentence tells; nothing is made, and nothing fails."""
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"CC": "/nowhere/cc -O2"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
    assert done.stderr == (
        "There is no C compiler (/nowhere/cc): bolts will run in plain Python, which is slower.\n"
    )
    assert not list(tmp_path.iterdir())


def test_whatever_is_to_be_compiled_has_a_source() -> None:
    """A ``.pxd`` file is nothing without the module that it is for."""
    declared = sorted((ROOT / "src").rglob("*.pxd"))
    assert declared
    assert all(one.with_suffix(".py").exists() for one in declared)
