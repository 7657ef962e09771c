"""Settings on the command line: ``-c key=value``, and the options of ``spark-submit``."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sparkstorm.config import Config, setting_name
from sparkstorm.errors import ConfigError
from sparkstorm.texts.credentials import holds_secret, looks_secret

__all__ = ["parse_settings", "python_files", "run_settings", "spark_settings"]

_PACKAGES, _PY_FILES = "spark.jars.packages", "spark.submit.pyFiles"
_DRIVER_MEMORY = "spark.driver.memory"
_PYTHON_FILES = (".py", ".zip", ".egg")

_TRIES_AGAIN = 3
"""How often a trial tries a failed message again: some four seconds until the dead letter."""


def run_settings(
    pairs: Iterable[str], own: Mapping[str, Any] | None = None, *, checkpoint: str | None
) -> Config:
    """Build the configuration of ``sparkstorm run``.

    Without a checkpoint a run is a trial: a message is soon given up, if no setting says otherwise.
    By the defaults of ``submit``, made for outages, a mistake would take half an hour to show.

    >>> run_settings([], checkpoint=None).max_retries
    3

    Raises:
        ConfigError: names the key or value at fault.
    """
    config = parse_settings(pairs, own)
    if checkpoint is not None or "max_retries" in config.model_fields_set:
        return config
    return config.override({"max_retries": _TRIES_AGAIN})


def parse_settings(pairs: Iterable[str], own: Mapping[str, Any] | None = None) -> Config:
    """Build the configuration from ``key=value`` texts; the last value of a key counts.

    Args:
        pairs: the texts of the command line.
        own: the topology's own settings, which the command line overrides.

    >>> parse_settings(["topology.acker.executors=0", "user.limit=3"]).user
    {'limit': '3'}

    Raises:
        ConfigError: names the key or value at fault.
    """
    given = {**(own or {}), **_pairs(pairs, "-c")}
    named: dict[str, Any] = {}
    for key, value in given.items():  # the command line's come last, by whatever name
        named[setting_name(key)] = value
    return Config.parse(named)


def spark_settings(
    pairs: Iterable[str],
    *,
    packages: str | None = None,
    py_files: str | None = None,
    driver_memory: str | None = None,
) -> dict[str, str]:
    """Return settings of Spark from the options that ``spark-submit`` has, too.

    >>> spark_settings(["spark.ui.enabled=true"], driver_memory="2g")
    {'spark.driver.memory': '2g', 'spark.ui.enabled': 'true'}

    Raises:
        ConfigError: names the option at fault. Spark takes seconds to say less.
    """
    given = {
        _PACKAGES: packages,
        _PY_FILES: py_files,
        _DRIVER_MEMORY: driver_memory,
    }
    settings = {key: value for key, value in given.items() if value is not None}
    settings.update(_pairs(pairs, "--conf"))
    for key in settings:
        if not key.startswith("spark."):
            raise ConfigError(
                f"--conf {key} is no setting of Spark, which begin with 'spark.': sparkstorm's own "
                f"settings are given with -c"
            )
    if "spark.master" in settings:
        raise ConfigError("--conf spark.master has an option of its own: write --master")
    _check_memory(settings.get(_DRIVER_MEMORY))
    _check_packages(settings.get(_PACKAGES, ""))
    for path in python_files(settings):
        _check_python_file(path)
    return settings


def python_files(settings: Mapping[str, str]) -> list[Path]:
    """Return the files of ``--py-files`` that are on this machine.

    >>> python_files({"spark.submit.pyFiles": "lib.zip, s3a://shop/more.zip"})
    [PosixPath('lib.zip')]
    """
    named = _listed(settings.get(_PY_FILES, ""))
    paths = [path.removeprefix("file://") for path in named]
    return [Path(path) for path in paths if "://" not in path]


def _check_memory(size: str | None) -> None:
    # Java takes no other form, and reads a bare number as bytes.
    if size is not None and not re.fullmatch(r"\d+[kmgtKMGT]", size):
        raise ConfigError(
            f"--driver-memory {size!r} is no size: write a whole number and k, m, g or t, "
            f"for example 2g"
        )


def _check_packages(packages: str) -> None:
    for package in _listed(packages):
        if not re.fullmatch(r"[^:]+:[^:]+:[^:]+", package.replace("/", ":")):
            raise ConfigError(
                f"--packages {package!r} is no package: write GROUP:NAME:VERSION, "
                f"for example org.apache.spark:spark-avro_2.13:4.0.0"
            )


def _check_python_file(path: Path) -> None:
    if not path.exists():
        raise ConfigError(f"--py-files {str(path)!r}: there is no such file")
    if not path.is_file() or path.suffix not in _PYTHON_FILES:
        raise ConfigError(
            f"--py-files {str(path)!r} is no {', '.join(_PYTHON_FILES[:-1])} or "
            f"{_PYTHON_FILES[-1]} file, and workers import modules from no other: put the modules "
            f"of a folder into a zip"
        )


def _listed(text: str) -> list[str]:
    return [item for part in text.split(",") if (item := part.strip())]


def _pairs(pairs: Iterable[str], option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            # A mistyped pair may be a password, so it is not quoted.
            given = "that" if looks_secret(pair) or holds_secret(pair) else repr(pair)
            raise ConfigError(f"{option} {given} is not a setting: write it as KEY=VALUE")
        found[key.strip()] = value.strip()
    return found
