"""A Kafka broker for tests."""

from collections.abc import Mapping
from typing import final

from sparkstorm.java import find_java
from sparkstorm.testing.servers.jars import cached_jars
from sparkstorm.testing.servers.process import ServerProcess, ask, free_ports, run

__all__ = ["KafkaServer"]

_JARS = (
    ("org.apache.kafka", "kafka_2.13", "4.3.1"),
    # without a logging binding a broker that fails says nothing
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
)


@final
class KafkaServer(ServerProcess):
    """A Kafka 4.3 broker with its own controller (KRaft); up in about three seconds.

    Args:
        properties: further properties of the broker.
        joins: a started broker. The new broker joins the same cluster and uses the same controller,
            so the cluster ends with the first broker.

    Give ``kafka.address`` of ``with KafkaServer() as kafka`` as ``bootstrap_servers``.
    """

    def __init__(
        self, properties: Mapping[str, str] | None = None, *, joins: "KafkaServer | None" = None
    ) -> None:
        super().__init__()
        self._port, own = free_ports(2)
        self._joins = joins is not None
        self.controller: str = f"127.0.0.1:{own}" if joins is None else joins.controller
        """The address of the cluster's controller."""
        self._properties = dict(properties or {})

    @property
    def node(self) -> int:
        """The broker's id in the cluster."""
        return self._port if self._joins else 1

    @property
    def address(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self._port}"

    def _command(self) -> list[str]:
        program, jars = find_java(), cached_jars("kafka", _JARS)
        config = self._folder / "server.properties"
        if not config.exists():
            lines = [f"{key}={value}" for key, value in self._settings().items()]
            config.write_text("\n".join(lines))
            run(
                [
                    *(program, "-XX:TieredStopAtLevel=1", "-cp", jars, "kafka.tools.StorageTool"),
                    *("format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(config)),
                ],
                "cannot format the broker's folder",
            )
        memory = ("-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        return [program, *memory, "-cp", jars, "kafka.Kafka", str(config)]

    def _answers(self) -> bool:
        """Ask for the versions of the protocol in the oldest form, which every broker knows."""
        request = b"\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff"
        head = ask("127.0.0.1", self._port, len(request).to_bytes(4, "big") + request, 10)
        return head[4:10] == b"\x00\x00\x00\x01\x00\x00"

    def _settings(self) -> dict[str, str]:
        listener = f"PLAINTEXT://{self.address}"
        return {
            "process.roles": "broker" if self._joins else "broker,controller",
            "node.id": str(self.node),
            "controller.quorum.voters": f"1@{self.controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": listener if self._joins else f"{listener},CONTROLLER://{self.controller}",
            "advertised.listeners": listener,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self._folder / "data"),
            "auto.create.topics.enable": "false",
            # internal topics sized for one broker: the defaults want three, and take seconds
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "4",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "log.cleaner.dedupe.buffer.size": "4194304",
            # records keep the times that tests give them, and must not be too old after minutes
            "log.retention.ms": "-1",
            # after a crash a broker waits for its old session to end: 12 seconds by default
            "broker.heartbeat.interval.ms": "500",
            "broker.session.timeout.ms": "1500",
            **self._properties,
        }
