"""Settings on the command line: ``-c key=value``."""

from collections.abc import Iterable, Mapping
from typing import Any

from sparkstorm.config import Config, setting_name
from sparkstorm.errors import ConfigError
from sparkstorm.texts.credentials import holds_secret, looks_secret

__all__ = ["parse_settings", "run_settings", "spark_settings"]

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
        ConfigError: a setting is none of Spark's.
    """
    given = {
        "spark.jars.packages": packages,
        "spark.submit.pyFiles": py_files,
        "spark.driver.memory": driver_memory,
    }
    settings = {key: value for key, value in given.items() if value is not None}
    settings.update(_pairs(pairs, "--conf"))
    for key in settings:
        if not key.startswith("spark."):
            raise ConfigError(
                f"--conf {key} is no setting of Spark, which begin with 'spark.': sparkstorm's own "
                f"settings are given with -c"
            )
    return settings


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
