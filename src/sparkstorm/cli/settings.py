"""Settings on the command line: ``-c key=value``."""

from collections.abc import Iterable

from sparkstorm.config import Config
from sparkstorm.errors import ConfigError
from sparkstorm.texts.credentials import holds_secret, looks_secret

__all__ = ["parse_settings", "spark_settings"]


def parse_settings(pairs: Iterable[str]) -> Config:
    """Build the configuration from ``key=value`` texts; the last value of a key counts.

    >>> parse_settings(["topology.acker.executors=0", "user.limit=3"]).user
    {'limit': '3'}

    Raises:
        ConfigError: names the key or value at fault.
    """
    return Config.parse(_pairs(pairs, "-c"))


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
