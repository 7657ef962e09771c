"""An ElasticMQ for tests: a server that speaks the protocol of Amazon's SQS."""

import json
from typing import final

from sparkstorm.java import find_java
from sparkstorm.testing.servers.jars import cached_jars
from sparkstorm.testing.servers.process import ServerProcess, ask, free_ports

__all__ = ["ElasticMQServer"]

_VERSION = "1.7.1"
_MODULES = (
    ("org.elasticmq", "elasticmq-server_2.13", _VERSION),
    ("org.elasticmq", "elasticmq-persistence-sql_2.13", _VERSION),
)


@final
class ElasticMQServer(ServerProcess):
    """An ElasticMQ 1.7; up in two seconds, after its jars were fetched once (37 MB).

    Queues and messages survive a restart; visibility runs by the machine's clock. Any credentials
    do.
    """

    def __init__(self) -> None:
        super().__init__()
        (self._port,) = free_ports(1)

    @property
    def address(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self._port}"

    @property
    def url(self) -> str:
        """The endpoint for SQS clients."""
        return f"http://{self.address}"

    def _command(self) -> list[str]:
        config, data = self._folder / "elasticmq.conf", self._folder / "data"
        data.mkdir(exist_ok=True)
        # Without a delay: by default H2 keeps the last half second in memory only.
        database = json.dumps(f"jdbc:h2:{data}/messages;WRITE_DELAY=0")
        queues = json.dumps(f"{data}/queues.conf")
        config.write_text(
            'include classpath("application.conf")\n'
            f'node-address {{ protocol = http, host = "127.0.0.1", port = {self._port} }}\n'
            f'rest-sqs {{ bind-port = {self._port}, bind-hostname = "127.0.0.1" }}\n'
            "rest-stats { enabled = false }\n"
            f"messages-storage {{ enabled = true, uri = {database} }}\n"
            f"queues-storage {{ enabled = true, path = {queues} }}\n"
        )
        jvm = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dconfig.file={config}"]
        jars = cached_jars("elasticmq", _MODULES)
        return [find_java(), *jvm, "-cp", jars, "org.elasticmq.server.Main"]

    def _answers(self) -> bool:
        request = b"GET / HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n"
        return b"HTTP/1." in ask("127.0.0.1", self._port, request, 8)
