"""Topics as a cluster describes them."""

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from sparkstorm.errors import SpoutConnectionError
from sparkstorm.kafka.client.troubles import UNKNOWN_TOPIC, RefusedError, Troubles, make
from sparkstorm.kafka.cluster import Cluster, Topic

__all__ = ["await_topics", "describe", "has_topic"]

_TOPIC_SECS = 5.0
"""A topic that is missing may be on its way."""

_LOOK_SECS = 0.1
_FIRST_SHARE = 0.3
"""How much of the time the first try to describe topics has."""


def await_topics(
    admin: Any, names: Sequence[str], secs: float, troubles: Troubles, *, patience_secs: float
) -> dict[str, Topic]:
    """Describe topics, asking again for a while: brokers that have just started know of none.

    Raises:
        SpoutConnectionError: no answer.
    """
    deadline = time.monotonic() + patience_secs
    while True:
        found = describe(admin, names, secs, troubles)
        if len(found) == len(set(names)) or time.monotonic() >= deadline:
            return found
        time.sleep(_LOOK_SECS)


def has_topic(cluster: Cluster, name: str, secs: float) -> bool:
    """Return whether a cluster has a topic; asked again for a while.

    Raises:
        SpoutConnectionError: no answer.
    """
    admin, troubles = make(AdminClient, cluster)
    patience_secs = min(secs, _TOPIC_SECS)
    return name in await_topics(admin, [name], secs, troubles, patience_secs=patience_secs)


def describe(admin: Any, names: Sequence[str], secs: float, troubles: Troubles) -> dict[str, Topic]:
    """Ask for these topics; those that do not exist are left out.

    Raises:
        SpoutConnectionError: no answer.
    """
    try:
        return _describe(admin, names, secs * _FIRST_SHARE, troubles)
    except RefusedError:
        raise
    except SpoutConnectionError:
        # librdkafka asks the broker that it last knew as the controller, and that may be gone: it
        # does not look for another one until it is made to
        try:
            admin.list_topics(timeout=secs)
        except KafkaException as error:
            raise troubles.error("describe topics", error) from error
        return _describe(admin, names, secs, troubles)


def _describe(
    admin: Any, names: Sequence[str], secs: float, troubles: Troubles
) -> dict[str, Topic]:
    try:
        asked = admin.describe_topics(TopicCollection(list(names)), request_timeout=secs)
    except KafkaException as error:
        raise troubles.error("describe topics", error) from error
    found: dict[str, Topic] = {}
    for name, answer in asked.items():
        try:
            described = answer.result(secs + 1)
        except KafkaException as error:
            if error.args[0].code() not in UNKNOWN_TOPIC:
                raise troubles.error(f"describe the topic {name}", error) from error
        except TimeoutError as error:
            raise troubles.error(f"describe the topic {name}") from error
        else:
            leaders = {
                p.id: p.leader and (p.leader.host, p.leader.port) for p in described.partitions
            }
            found[name] = Topic(name, str(described.topic_id), leaders)
    return found
