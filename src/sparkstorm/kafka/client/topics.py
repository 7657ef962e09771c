"""Topics as a cluster describes them."""

from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaException, TopicCollection

from sparkstorm.kafka.client.troubles import UNKNOWN_TOPIC, Troubles
from sparkstorm.kafka.cluster import Topic

__all__ = ["describe"]


def describe(admin: Any, names: Sequence[str], secs: float, troubles: Troubles) -> dict[str, Topic]:
    """Ask for these topics; those that do not exist are left out.

    Raises:
        SpoutConnectionError: no answer.
    """
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
