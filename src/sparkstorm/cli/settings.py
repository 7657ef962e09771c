"""Settings on the command line: ``-c key=value``."""

from collections.abc import Iterable

from sparkstorm.config import Config
from sparkstorm.errors import ConfigError
from sparkstorm.texts.credentials import holds_secret, looks_secret

__all__ = ["parse_settings"]


def parse_settings(pairs: Iterable[str]) -> Config:
    """Build the configuration from ``key=value`` texts; the last value of a key counts.

    >>> parse_settings(["topology.acker.executors=0", "user.limit=3"]).user
    {'limit': '3'}

    Raises:
        ConfigError: names the key or value at fault.
    """
    settings: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            # A mistyped pair may be a password, so it is not quoted.
            given = "that" if looks_secret(pair) or holds_secret(pair) else repr(pair)
            raise ConfigError(f"-c {given} is not a setting: write it as KEY=VALUE")
        settings[key.strip()] = value.strip()
    return Config.parse(settings)
