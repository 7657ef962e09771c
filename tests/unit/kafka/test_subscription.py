"""The topics of a spout: what may be named, and what a pattern takes."""

import re
from typing import Any

import pytest

from sparkstorm import ConfigError
from sparkstorm.kafka import KafkaSpout
from sparkstorm.kafka.subscription import Subscription


@pytest.mark.parametrize(
    ("topics", "why"),
    [
        (["t", "t"], "the topic 't' stands twice in topics: name it once"),
        ("", "'' is no name of a topic"),
        (["a", ""], "'' is no name of a topic"),
        ("orders-*", "for a pattern give re.compile"),
        ([7], "7 is no name of a topic"),
        ("..", "'..' is no name of a topic"),
        ("x" * 250, "at most 249"),
        ([], "there is no topic to read"),
    ],
)
def test_names_that_no_topic_has_are_refused_at_once(topics: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(why)):
        KafkaSpout(topics, bootstrap_servers="k:1", group="g")


def test_a_pattern_takes_names_with_two_underscores_only_if_it_says_so() -> None:
    everything, hidden = (
        Subscription(topics=re.compile(".*")),
        Subscription(topics=re.compile("__mine-.*")),
    )
    assert everything.picks("orders")
    assert everything.picks("_orders")
    assert not everything.picks("__consumer_offsets")
    assert hidden.picks("__mine-1")
    assert Subscription(topics="__mine").picks("__mine")
