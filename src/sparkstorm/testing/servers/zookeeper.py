"""A ZooKeeper for tests."""

from typing import final

from sparkstorm.java import find_java
from sparkstorm.testing.servers.jars import pyspark_jars
from sparkstorm.testing.servers.process import ServerProcess, ask, free_ports

__all__ = ["ZooKeeperServer"]


@final
class ZooKeeperServer(ServerProcess):
    """A ZooKeeper 3.9, run from PySpark's jars; up in about a second."""

    def __init__(self) -> None:
        super().__init__()
        (self._port,) = free_ports(1)

    @property
    def address(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self._port}"

    def _command(self) -> list[str]:
        config = self._folder / "zoo.cfg"
        config.write_text(
            f"dataDir={self._folder / 'data'}\nclientPort={self._port}\n"
            "clientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
            "4lw.commands.whitelist=ruok,srvr\n"
        )
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        jars = f"{pyspark_jars()}/*"
        return [find_java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", jars, main, str(config)]

    def _answers(self) -> bool:
        return b"Mode:" in ask("127.0.0.1", self._port, b"srvr", 4096)
