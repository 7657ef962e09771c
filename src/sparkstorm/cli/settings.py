"""Settings on the command line: ``-c key=value``."""

from collections.abc import Iterable

from sparkstorm.config import Config
from sparkstorm.errors import ConfigError
from sparkstorm.texts.credentials import holds_secret, looks_secret

__all__ = ["parse_settings", "run_settings"]

_TRIES_AGAIN = 3
"""How often a trial tries a failed message again: some four seconds until the dead letter."""


def run_settings(pairs: Iterable[str], *, checkpoint: str | None) -> Config:
    """Build the configuration of ``sparkstorm run``.

    Without a checkpoint a run is a trial: a message is soon given up, if no setting says otherwise.
    By the defaults of ``submit``, made for outages, a mistake would take half an hour to show.

    >>> run_settings([], checkpoint=None).max_retries
    3

    Raises:
        ConfigError: names the key or value at fault.
    """
    config = parse_settings(pairs)
    if checkpoint is not None or "max_retries" in config.model_fields_set:
        return config
    return config.override({"max_retries": _TRIES_AGAIN})


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
