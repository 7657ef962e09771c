"""When the brokers are away, refuse us, or lose a topic: it is said, and nothing is lost."""

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

import sparkstorm as ss
from sparkstorm.errors import EnvironmentFault
from sparkstorm.kafka import KafkaBolt, KafkaSpout
from sparkstorm.kafka.client.desk import KafkaDesk
from sparkstorm.kafka.client.troubles import RefusedError
from sparkstorm.kafka.cluster import Cluster, Partition
from sparkstorm.testing import LocalRunner, wait_until
from sparkstorm.testing.servers import KafkaServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e


class Echo(ss.BasicBolt):
    """Emits what it gets."""

    outputs = ("value",)

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([tup["value"]])


def topology_of(address: str, topic: str, **more: Any) -> ss.Topology:
    given = {"group": "g", "value": "string", "commit_secs": 0.0, "refresh_secs": 0.2, **more}
    builder = ss.TopologyBuilder()
    builder.set_spout("in", KafkaSpout(topic, bootstrap_servers=address, **given))
    builder.set_bolt("echo", Echo()).shuffle_grouping("in")
    return builder.create_topology()


def runner_of(address: str, topic: str, seen: list[str], **more: Any) -> LocalRunner:
    return LocalRunner(
        topology_of(address, topic, **more),
        config=ss.Config(max_retries=1, retry_backoff_secs=0.1),
        taps=["echo"],
        on_tap=lambda key, task, rows: seen.extend(row[0] for row in rows),
    )


def test_a_broker_that_is_down_at_the_start_is_waited_for(
    mortal_kafka: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """With a message; when it comes up, the run begins."""
    topic = mortal_kafka.topic()
    mortal_kafka.put(topic, ["a"])
    mortal_kafka.server.kill()
    seen: list[str] = []

    def come_up() -> None:
        wait_until(lambda: "waiting for it" in caplog.text)
        mortal_kafka.server.start()

    helper = threading.Thread(target=come_up)
    helper.start()
    with (
        caplog.at_level(logging.WARNING),
        runner_of(mortal_kafka.address, topic, seen, timeout_secs=1.0) as runner,
    ):
        wait_until(lambda: seen == ["a"], check=runner.step)
    helper.join()


def test_a_broker_that_stays_away_ends_the_start() -> None:
    """With its address, and what is wrong."""
    with pytest.raises(
        ss.SpoutConnectionError, match=r"Connection refused.*Gave up after 1 s"
    ) as it:
        runner_of("127.0.0.1:1", "t", [], timeout_secs=0.5, connect_secs=1.0).__enter__()
    assert "127.0.0.1:1" in str(it.value)


def test_a_topic_that_is_not_there_is_named(kafka: Any) -> None:
    with pytest.raises(ss.SpoutConnectionError, match="no topic 'ordres': create it"):
        runner_of(kafka.address, "ordres", [], connect_secs=1.0).__enter__()


def test_a_broker_that_is_killed_is_waited_for(
    mortal_kafka: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Messages that were planned fail to be read, which is no attempt of theirs (one retry!)."""
    topic = mortal_kafka.topic()
    mortal_kafka.put(topic, range(10))
    seen: list[str] = []
    with (
        caplog.at_level(logging.WARNING),
        runner_of(mortal_kafka.address, topic, seen, timeout_secs=1.0) as runner,
    ):
        assert runner.plan_batch()
        mortal_kafka.server.kill()
        runner.finish(runner.run_job())
        runner.commit()
        for _ in range(2):
            wait_until(lambda: runner.statistics().failed > 10, check=runner.step)
        assert runner.statistics().given_up == 0
        wait_until(lambda: "trying again until it answers" in caplog.text)
        mortal_kafka.server.start()
        wait_until(lambda: len(seen) == 10, check=runner.step)
        mortal_kafka.put(topic, ["more"])
        wait_until(lambda: len(seen) == 11, check=runner.step)
        assert "the cluster answers again" in caplog.text
        assert runner.statistics().given_up == 0
    assert sorted(seen) == sorted([*map(str, range(10)), "more"])
    assert mortal_kafka.committed("g", topic)[0] == 11


@pytest.mark.slow
def test_a_partition_gets_another_leader(kafka_pair: Any) -> None:
    """The broker that leads is killed while its partitions are read: the other one has it all."""
    kafka, second = kafka_pair
    topic = kafka.topic(4, replicas=2)
    led = [n for n, leader in kafka.leaders(topic).items() if leader == second.node]
    assert led
    for number in range(4):
        kafka.put(topic, [f"{number}/{n}" for n in range(1000)], partition=number)
    seen: list[str] = []
    with runner_of(kafka.address, topic, seen, timeout_secs=2.0) as runner:
        wait_until(runner.plan_batch)
        second.kill()
        runner.finish(runner.run_job())
        runner.commit()
        wait_until(lambda: set(kafka.leaders(topic).values()) == {1})
        for number in range(4):
            kafka.put(topic, [f"{number}/{n}" for n in range(1000, 1010)], partition=number)
        wait_until(lambda: len(set(seen)) == 4040, check=runner.step)
        wait_until(lambda: runner.statistics().pending == 0, check=runner.step)
        assert runner.statistics().given_up == 0
    assert sorted(seen) == sorted(f"{number}/{n}" for number in range(4) for n in range(1010))
    assert [kafka.committed("g", topic, number)[0] for number in range(4)] == [1010] * 4


def test_a_topic_that_is_deleted_and_made_anew(
    kafka: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said, what was planned of the old one is given up, and the new one is read whole."""
    topic = kafka.topic()
    kafka.put(topic, range(50))
    seen: list[str] = []
    with (
        caplog.at_level(logging.WARNING),
        runner_of(kafka.address, topic, seen, group=topic, timeout_secs=2.0) as runner,
    ):
        wait_until(lambda: len(seen) == 50, check=runner.step)
        kafka.put(topic, ["lost"] * 3)
        wait_until(runner.plan_batch)
        kafka.delete_topic(topic)
        wait_until(lambda: "is gone from the cluster" in caplog.text or not runner.step())
        kafka.topic(name=topic)
        kafka.put(topic, ["new", "topic"])
        wait_until(lambda: len(seen) >= 52, check=runner.step)
        wait_until(lambda: runner.statistics().given_up == 3, check=runner.step)
        assert runner.statistics().failures["expired"] == 3
    assert seen[50:] == ["new", "topic"]
    assert "its topic was deleted and made anew" in caplog.text
    assert kafka.committed(topic, topic)[0] == 2


def test_progress_in_a_topic_that_is_gone_is_in_nobodys_way(kafka: Any) -> None:
    """A spout that waited until it can be stored would read nothing more of its other topics."""
    gone, there = Partition("gone", 0), Partition(kafka.topic(), 0)
    desk = KafkaDesk(Cluster(bootstrap_servers=kafka.address), "g-gone")
    desk.commit({gone: (1, "")})
    desk.commit({gone: (2, ""), there: (3, "")})
    assert desk.committed([there]) == {there: (3, "")}
    desk.close()


_JAAS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" '
    'password="admin" user_admin="admin" user_storm="korrekt7";'
)
_SASL = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": _JAAS,
}


def credentials(password: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "storm",
        "sasl.password": password,
    }


def test_refused_credentials_are_said_at_once(
    absent: Callable[[str], NoReturn], caplog: pytest.LogCaptureFixture
) -> None:
    """With the broker's words, and without the password; the right one lets us in."""
    server = KafkaServer(_SASL)
    try:
        server.start()
    except EnvironmentFault as fault:
        absent(str(fault))
    with server, caplog.at_level(logging.DEBUG):
        began = time.monotonic()
        options = {"client": credentials("wrong-secret"), "connect_secs": 60.0}
        with pytest.raises(ss.SpoutConnectionError, match=r"[Aa]uthentication failed") as caught:
            runner_of(server.address, "t", [], **options).__enter__()
        assert time.monotonic() - began < 30
        options = {"client": credentials("korrekt7"), "connect_secs": 1.0}
        with pytest.raises(ss.SpoutConnectionError, match="no topic 't'"):
            runner_of(server.address, "t", [], **options).__enter__()
    assert "wrong-secret" not in f"{caught.value} {caplog.text}"


def test_a_group_that_is_refused_is_said_and_not_waited_for(
    started: Callable[[KafkaServer], KafkaServer],
) -> None:
    """The consumer itself would say "Timed out" until nobody waits any longer."""
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    rules = {"authorizer.class.name": authorizer, "super.users": "User:admin;User:ANONYMOUS"}
    with started(KafkaServer({**_SASL, **rules})) as server:
        right = {**credentials("admin"), "sasl.username": "admin", "log_level": 2}
        admin = AdminClient({"bootstrap.servers": server.address, **right})
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result()
        where = (ResourceType.TOPIC, "t", ResourcePatternType.LITERAL, "User:storm", "*")
        acl = AclBinding(*where, AclOperation.READ, AclPermissionType.ALLOW)
        admin.create_acls([acl])[acl].result()
        options = {"client": credentials("korrekt7"), "connect_secs": 600.0, "timeout_secs": 3.0}
        with pytest.raises(RefusedError, match=r"offsets of 'g' .* Group authorization failed"):
            runner_of(server.address, "t", [], **options).__enter__()


def test_a_group_that_is_asked_for_while_its_broker_comes_back(mortal_kafka: Any) -> None:
    """Librdkafka would abort the whole process if an AdminClient asked for the group's state."""
    topic, going = mortal_kafka.topic(), threading.Event()
    cluster = Cluster(bootstrap_servers=mortal_kafka.address, client={}, timeout_secs=0.5)
    answers: list[bool] = []

    def ask() -> None:
        desk = KafkaDesk(cluster, "g")
        while not going.is_set():
            try:
                desk.committed([Partition(topic, 0)])
            except ss.SpoutConnectionError:
                answers.append(False)
            else:
                answers.append(True)
        desk.close()

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(2):
        wait_until(lambda: answers[-3:] == [True] * 3)
        mortal_kafka.server.kill()
        refused = answers.count(False)
        wait_until(lambda refused=refused: answers.count(False) >= refused + 3)  # type: ignore[misc]
        mortal_kafka.server.start()
    wait_until(lambda: answers[-3:] == [True] * 3)
    going.set()
    for thread in threads:
        thread.join()


def test_no_repr_shows_a_password() -> None:
    secret = {"sasl.password": "hush"}
    for one in (
        KafkaSpout("t", bootstrap_servers="k:1", group="g", client=secret),
        KafkaBolt("t", bootstrap_servers="k:1", client=secret),
    ):
        assert "k:1" in repr(one)
        assert "hush" not in repr(one)


@pytest.mark.spark
@pytest.mark.slow
def test_a_broker_that_is_killed_is_waited_for_on_spark(
    mortal_kafka: Any, spark: "SparkSession"
) -> None:
    """Several times while messages flow: each message is processed, and all are committed."""
    topic = mortal_kafka.topic(2)
    seen: list[str] = []
    with ss.submit(
        topology_of(mortal_kafka.address, topic, timeout_secs=2.0),
        session=spark,
        config=ss.Config(max_retries=1, retry_backoff_secs=0.1),
        taps=["echo"],
        on_tap=lambda key, task, rows: seen.extend(row[0] for row in rows),
    ) as run:
        for turn in range(3):
            for number in range(2):
                values = [f"{turn}/{number}/{n}" for n in range(1000)]
                mortal_kafka.put(topic, values, partition=number)
            mortal_kafka.server.kill()
            mortal_kafka.server.start()
        wait_until(lambda: len(set(seen)) == 6000)
        wait_until(lambda: run.statistics().pending == 0)
        assert run.statistics().given_up == 0
    assert [mortal_kafka.committed("g", topic, n)[0] for n in range(2)] == [3000, 3000]
