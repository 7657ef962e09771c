"""Compiles the modules on the path of each tuple with Cython, where there is a C compiler.

They run without it as well: what makes C of a module is the ``.pxd`` file beside it. Pip runs this
when it makes a wheel. ``make setup``, and whoever works on these modules, runs
``python hatch_build.py``, which puts the compiled modules beside their sources.
"""

import contextlib
import os
import shutil
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
SOURCES = ROOT / "src"
DIRECTIVES = {
    "annotation_typing": False,  # C types stand in the .pxd files, and nowhere else
    "auto_pickle": False,  # none of them is ever pickled
    "binding": False,  # plain C methods: those Python calls fastest
    "language_level": 3,
    "nonecheck": True,  # where a None is, there is an AttributeError, as without C
}


class CompileHook(BuildHookInterface[Any]):
    """What pip runs before it packs a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the compiled modules; ``version`` is "standard", or "editable"."""
        if version != "standard":
            return
        compiled = compile_modules(self._folder)
        if compiled:
            build_data["force_include"] |= {str(self._folder / one): str(one) for one in compiled}
            build_data["pure_python"] = False
            build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing beside the wheel but the wheel."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _folder(self) -> Path:
        return Path(self.directory) / "compiled"


def compile_modules(folder: Path) -> list[Path]:
    """Compile all modules into a folder.

    Returns:
        Their files, relative to the folder; none if there is no C compiler, which is told.
    """
    why = _why_not()
    if why:
        print(f"{why}: bolts will run in plain Python, which is slower.", file=sys.stderr)
        return []
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    with contextlib.chdir(SOURCES), TemporaryDirectory() as scratch:
        modules = [one.with_suffix(".py") for one in sorted(Path().rglob("*.pxd"))]
        extensions = [
            Extension(
                ".".join(module.with_suffix("").parts),
                [str(module)],
                extra_compile_args=["-g0"],
            )
            for module in modules
        ]
        made = cythonize(extensions, build_dir=scratch, compiler_directives=DIRECTIVES, quiet=True)
        command = Distribution({"ext_modules": made}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(folder), scratch
        command.parallel = os.cpu_count()
        command.ensure_finalized()
        command.run()
        return [Path(one).relative_to(folder) for one in command.get_outputs()]


def _why_not() -> str:
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        return f"There is no C compiler ({compiler})"
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.exists():
        return f"There are no headers of this Python ({header})"
    return ""


def main() -> None:
    """Put the compiled modules beside their sources, in place of older ones."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    with TemporaryDirectory(dir=ROOT) as folder:
        compiled = compile_modules(Path(folder))
        for old in SOURCES.rglob(f"*{suffix}"):
            old.unlink()
        for one in compiled:  # moved, not written: a running process may have the old one open
            Path(folder, one).rename(SOURCES / one)


if __name__ == "__main__":
    main()
