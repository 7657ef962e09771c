"""The settings: names, aliases, values as people write them, and mistakes."""

import pickle

import pytest

from sparkstorm.config import COMPONENT_KEYS, Config
from sparkstorm.errors import ConfigError


def test_every_setting_has_a_default() -> None:
    """And a sentence that says what it is for."""
    assert Config() == Config.parse({})
    assert all(field.description for field in Config.model_fields.values())


def test_every_setting_but_the_users_has_storms_kind_of_key() -> None:
    """Dotted, under ``topology`` but for what it promises, and no two alike."""
    aliases = [field.alias for name, field in Config.model_fields.items() if name != "user"]
    kinds = ("topology.", "processing.")
    assert all(alias and alias.startswith(kinds) for alias in aliases)
    assert len(set(aliases)) == len(aliases)


def test_a_setting_may_be_written_as_in_storm() -> None:
    """It is the same setting."""
    one = Config.parse({"topology.message.timeout.secs": 60})
    assert one == Config(message_timeout_secs=60)
    assert one.message_timeout_secs == 60.0


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("topology.acker.executors", "0", 0),
        ("acker_executors", "none", None),
        ("topology.max.retries", "None", None),
        ("max_retries", "null", None),
        ("topology.enable.message.timeouts", "false", False),
        ("enable_message_timeouts", "off", False),
        ("topology.message.timeout.secs", "2.5", 2.5),
        ("message_timeout_mode", "progress", "progress"),
        ("topology.max.pending.bytes", "1000", 1000),
    ],
)
def test_values_may_be_text(key: str, text: str, expected: object) -> None:
    """As they come from ``-c KEY=VALUE``."""
    config = Config.parse({key: text})
    name = next(n for n, f in Config.model_fields.items() if key in (n, f.alias))
    found = getattr(config, name)
    assert found == expected
    assert type(found) is type(expected)


def test_settings_of_ones_own_go_under_user() -> None:
    """Their values stay as they are; both ways of writing them go together."""
    config = Config.parse({"user.host": "none", "user.a.b": 1, "user": {"port": 5, "host": "x"}})
    assert config.user == {"port": 5, "host": "none", "a.b": 1}
    assert Config.parse({"user": {"port": 5}}).user == {"port": 5}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"acker_executor": 1}, "unknown setting 'acker_executor': did you mean 'acker_executors'"),
        (
            {"topology.acker.executor": 1},
            "unknown setting 'topology.acker.executor': did you mean 'topology.acker.executors'",
        ),
        ({"colour": 1}, "unknown setting 'colour': see docs/configuration.md"),
        ({"acker_executors": -1}, "setting 'acker_executors' has the value -1: .*greater than"),
        (
            {"topology.acker.executors": "many"},
            "setting 'topology.acker.executors' has the value 'many': .*valid integer",
        ),
        ({"message_timeout_secs": 0}, "has the value 0: .*greater than 0"),
        ({"message_timeout_secs": float("nan")}, "has the value nan"),
        ({"message_timeout_secs": "none"}, "has the value None: .*valid number"),
        ({"message_timeout_mode": "never"}, "has the value 'never': .*'emit' or 'progress'"),
        ({"max_spout_pending": 1.5}, "has the value 1.5"),
        (
            {"batch_max_secs": 1, "batch_target_secs": 5},
            r"batch_max_secs is 1: choose at least batch_target_secs \(5\) and less than",
        ),
        (
            {"batch_max_secs": 60, "batch_timeout_secs": 60},
            r"batch_max_secs is 60: .* less than batch_timeout_secs \(60\)",
        ),
        ({"user.": 3}, "unknown setting 'user.': did you mean 'user'"),
        ({"user": 5, "user.a": 1}, "setting 'user' has the value 5"),
        (
            {"acker_executors": 1, "topology.acker.executors": 1},
            "setting 'acker_executors' is given twice, also by Storm's key: drop one",
        ),
    ],
)
def test_a_mistake_is_explained(settings: dict[str, object], message: str) -> None:
    """With the key as it was written, the value, and what would do."""
    with pytest.raises(ConfigError, match=message):
        Config.parse(settings)


@pytest.mark.parametrize(
    ("settings", "secs"),
    [
        ({}, 60.0),
        ({"batch_target_secs": 0.5}, 30.0),
        ({"batch_timeout_secs": 20}, 10.0),
        ({"batch_max_secs": 7, "batch_timeout_secs": 8}, 7.0),
    ],
)
def test_how_long_a_batch_may_take(settings: dict[str, object], secs: float) -> None:
    """As was set, or what fits the target and the time-out."""
    assert Config.parse(settings).batch_most_secs == secs


def test_all_mistakes_are_told_at_once() -> None:
    """A line for each."""
    with pytest.raises(ConfigError) as caught:
        Config(colour=1, acker_executors=-1, enable_message_timeouts="perhaps")
    assert len(str(caught.value).splitlines()) == 3


def test_the_constructor_checks_like_parse() -> None:
    """A mistake in a program is found just the same."""
    with pytest.raises(ConfigError, match="did you mean 'max_retries'"):
        Config(max_retry=1)


def test_settings_cannot_be_changed() -> None:
    """What a component sees is what was checked."""
    with pytest.raises(ValueError, match="frozen"):
        Config().enable_message_timeouts = False


def test_an_override_is_checked_too() -> None:
    """By name or by Storm's key; without any it is the same object."""
    base = Config(max_retries=3, enable_message_timeouts=False)
    assert base.override({}) is base
    assert base.override({"max_retries": 5}) == Config(max_retries=5, enable_message_timeouts=False)
    wanted = Config(max_retries=5, enable_message_timeouts=False)
    assert base.override({"topology.max.retries": 5}) == wanted
    with pytest.raises(ConfigError, match="'max_retries' has the value -1"):
        base.override({"max_retries": -1})


def test_components_may_override_what_is_a_setting() -> None:
    """The list of their keys names settings."""
    assert set(Config.model_fields) >= COMPONENT_KEYS


def test_settings_travel_to_the_workers() -> None:
    """By pickle, as part of the plan."""
    config = Config(acker_executors=0, user={"a": [1]})
    assert pickle.loads(pickle.dumps(config)) == config
