"""The version of sparkstorm, which the build reads from here, and whether it is a compiled one."""

from importlib.util import find_spec

__all__ = ["__version__", "is_compiled"]

__version__ = "0.1.0"


def is_compiled() -> bool:
    """Whether what runs for each tuple is C here, or plain Python: the same, but slower."""
    spec = find_spec("sparkstorm.tuples")
    return spec is not None and not str(spec.origin).endswith(".py")
