"""Loading: from ``FILE.py`` or ``module:name`` to a topology whose classes also work in workers."""

import importlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, final

import cloudpickle

from sparkstorm.dead_letters.origin import Origin
from sparkstorm.errors import SparkstormError, TopologyError
from sparkstorm.texts.credentials import untold
from sparkstorm.texts.logs import logger_of
from sparkstorm.topology.builder import TopologyBuilder
from sparkstorm.topology.graph import Topology

__all__ = ["Loaded", "load", "load_again", "load_component", "offer_python_files"]

_logger = logger_of(__name__)

_MODULE_PREFIX = "sparkstorm_file_"
"""A file is loaded under a name of its own, so it hides no other module."""


@final
@dataclass(frozen=True, slots=True)
class Loaded:
    """A topology, its default name, the folder of its modules, and its own settings.

    Attributes:
        path: the file of the topology, if the target is a file.
        expression: the Python that makes the topology from the module's names, with ``args`` for
            the arguments; empty for YAML.
    """

    topology: Topology
    name: str
    folder: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None
    expression: str = ""

    def origin(self, target: str, args: Sequence[str], settings: Sequence[str]) -> Origin:
        """Return how the topology was loaded, so that another command can load it again."""
        if self.path is not None:
            _, colon, name = target.partition(":")
            target = f"{self.path.resolve()}{colon}{name}"
        return Origin(
            target=target, args=list(args), settings=list(settings), folder=str(Path.cwd())
        )


def load_again(origin: Origin) -> Loaded:
    """Load a topology as an earlier command did, from the same working folder.

    Raises:
        TopologyError: names the file and its fault.
    """
    if not Path(origin.folder).is_dir():
        raise TopologyError(f"the folder {origin.folder!r} of the run is gone: name the topology")
    with chdir(origin.folder):
        return load(origin.target, origin.args)


def load(target: str, args: Sequence[str] = ()) -> Loaded:
    """Load a topology from ``FILE.py``, ``FILE.py:name``, ``module:name`` or ``FILE.yaml``.

    The folder goes on the module path of this process, and of the processes Spark starts from it.

    Raises:
        TopologyError: names the file and its fault.
    """
    if target.endswith((".yaml", ".yml")):
        return _load_yaml(Path(target), args)
    place, _, name = target.partition(":")
    folder, module = _module_of(place)
    stem = Path(place).stem if _is_file(place) else place.rpartition(".")[2]
    topology, expression = _topology_of(module, name or "topology", target, list(args))
    path = Path(place) if _is_file(place) else None
    return Loaded(topology, _name_of(stem), folder, path=path, expression=expression)


def _name_of(text: str) -> str:
    return re.sub(r"[^\w.-]", "-", text).lstrip(".") or "topology"


def _load_yaml(path: Path, args: Sequence[str]) -> Loaded:
    """Load a topology of Storm's Flux; the arguments are the values of its properties."""
    try:
        from sparkstorm.flux import load_flux
    except ModuleNotFoundError as error:
        raise TopologyError(
            f"{str(path)!r} needs PyYAML, which is not installed: pip install 'sparkstorm[yaml]'"
        ) from error
    for pair in args:
        if not pair.partition("=")[0] or "=" not in pair:
            raise TopologyError(f"the argument {pair!r} is no property of {path}: write NAME=VALUE")
    properties = dict(pair.partition("=")[::2] for pair in args)
    folder = path.resolve().parent
    _offer(folder)
    flux = load_flux(path, properties)
    if flux.ignored:
        _logger.warning("settings of Storm without a use here: %s", ", ".join(flux.ignored))
    name = _name_of(flux.name or path.stem)
    return Loaded(flux.topology, name, folder, flux.settings, path=path)


def load_component(target: str, arguments: Mapping[str, Any]) -> Any:
    """Load a spout or bolt from ``FILE.py:NAME`` or ``module:NAME``: an instance, or its class.

    Args:
        target: the place and the name.
        arguments: the arguments for the class.

    Raises:
        TopologyError: names the target and its fault.
    """
    place, _, name = target.partition(":")
    if not name:
        raise TopologyError(f"{target!r} names no class: write {place}:NAME")
    _, module = _module_of(place)
    if not hasattr(module, name):
        raise TopologyError(f"{place!r} defines no {name!r}")
    found = getattr(module, name)
    if isinstance(found, type):
        return _guard(target, lambda: found(**arguments))
    if arguments:
        raise TopologyError(f"{target!r} is no class, so it takes no arguments")
    return found


def _is_file(place: str) -> bool:
    """Whether a place is meant as a path; beside a module, a folder of its name holds data."""
    path = Path(place)
    if place.endswith(".py") or os.sep in place or path.is_file():
        return True
    is_module = Path(f"{place}.py").is_file() or (path / "__init__.py").is_file()
    return path.is_dir() and not is_module


def _module_of(place: str) -> tuple[Path, ModuleType]:
    """Return the module of a file or name, and the folder that its own imports are from."""
    folder = Path(place).resolve().parent if _is_file(place) else Path.cwd()
    _offer(folder)
    return folder, _load_file(place) if _is_file(place) else _import(place)


def _offer(folder: Path) -> None:
    """Make the modules of a folder importable, here and in the processes Spark starts."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(folder) not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, paths)])


def offer_python_files(paths: Iterable[Path]) -> None:
    """Make the modules of ``--py-files`` importable here, as Spark does in its workers.

    They come last on the module path, so the folder of a ``.py`` file hides no other module.
    """
    for path in paths:
        place = str((path.parent if path.suffix == ".py" else path).resolve())
        if place not in sys.path:
            sys.path.append(place)


def _load_file(place: str) -> ModuleType:
    path = Path(place).resolve()
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "there is no such file"
        raise TopologyError(f"{place!r}: {what}. Give the Python file that defines the topology")
    name = _MODULE_PREFIX + re.sub(r"\W", "_", path.stem)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TopologyError(f"{place!r} is not a Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # Workers cannot import the file under this name, so its classes travel by value. Workers do
    # import the modules beside the file, since those may hold objects that cannot be pickled.
    cloudpickle.register_pickle_by_value(module)
    loader = spec.loader
    _guard(place, lambda: loader.exec_module(module))
    return module


def _import(name: str) -> ModuleType:
    try:
        missing = importlib.util.find_spec(name) is None
    except (ImportError, ValueError):
        missing = True
    if missing:
        raise TopologyError(
            f"there is no file and no module {name!r}: give a file (FILE.py), or a module that "
            f"can be imported from here (module:name)"
        )
    module: ModuleType = _guard(name, lambda: importlib.import_module(name))
    return module


def _topology_of(
    module: ModuleType, name: str, target: str, args: list[str]
) -> tuple[Topology, str]:
    """Return the topology that a module names, and the expression that makes it."""
    if not hasattr(module, name):
        raise TopologyError(
            f"{target!r} defines no {name!r}: set {name} to what TopologyBuilder.create_topology() "
            f"returned, or define a function {name}() that returns it"
        )
    found, expression = getattr(module, name), name
    if not isinstance(found, Topology | TopologyBuilder) and callable(found):
        expression += "(args)" if inspect.signature(found).parameters else "()"
        found = _call(found, name, target, args)
    elif args:
        raise TopologyError(
            f"{target!r} takes no arguments: make {name} a function of a list of strings to use "
            f"what is behind --"
        )
    if isinstance(found, TopologyBuilder):
        expression += ".create_topology()"
        found = found.create_topology()
    if not isinstance(found, Topology):
        raise TopologyError(
            f"{name!r} of {target!r} is a {type(found).__name__}, not a topology: use what "
            f"TopologyBuilder.create_topology() returns"
        )
    return found, expression


def _call(function: Callable[..., Any], name: str, target: str, args: list[str]) -> Any:
    wants = len(inspect.signature(function).parameters)
    if wants > 1 or (args and not wants):
        raise TopologyError(
            f"the function {name!r} of {target!r} takes {wants} parameters: let it take one, the "
            f"list of arguments after --" + (", or give none" if args else "")
        )
    return _guard(target, lambda: function(args) if wants else function())


def _guard(target: str, action: Callable[[], Any]) -> Any:
    """Run the user's code; any error of it becomes one sentence."""
    try:
        return action()
    except SparkstormError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - user code
        raise TopologyError(
            f"{target!r} could not be loaded: {_where(error)}{type(error).__name__}: {error}"
        ) from untold(error)


def _where(error: BaseException) -> str:
    """Return the last line of the user's own code on the error's way."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename and Path(__file__) != Path(frame.filename)
    ]
    return f"line {frames[-1].lineno} of {frames[-1].filename}, " if frames else ""
