"""No secret is shown: by values, errors and their causes, logs, plans, or files of the driver."""

import logging
import pickle
import subprocess
import sys
import traceback
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.credentials import Secret, hidden, masked
from sparkstorm.delivery.files import MemoryFiles
from sparkstorm.errors import CommitError, ConfigError
from sparkstorm.kafka import KafkaSpout
from sparkstorm.kafka.cluster import Cluster
from sparkstorm.kafka.zookeeper import ZooKeeperProgress
from sparkstorm.planning.explain import explain
from sparkstorm.planning.passes import make_plan
from sparkstorm.postgres import PostgresSink
from sparkstorm.testing import LocalRunner, LogSpout, ManualClock

PASSWORD = "geheim/ni%cht raten"  # noqa: S105 - it opens nothing
QUOTED = "geheim%2Fni%25cht%20raten"
NOWHERE = "host=127.0.0.1 port=1 user=me dbname=d connect_timeout=2"


def told(error: BaseException) -> str:
    """Everything that Python prints of an error."""
    return "".join(traceback.format_exception(error)) + repr(error)


def wired(sink: ss.Bolt) -> ss.Topology:
    """Numbers that go into a sink."""
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", LogSpout([[1], [2]], "n int"))
    builder.set_bolt("sink", sink).shuffle_grouping("numbers")
    return builder.create_topology()


@pytest.mark.parametrize(
    "dsn",
    [
        f"host=h password={PASSWORD}",
        f"postgresql://me:{PASSWORD}@host/d",
        f"postgresql://me:{QUOTED}@host/d?nonsense=1",
        f"{PASSWORD}",
    ],
)
def test_an_address_that_cannot_be_read_is_not_quoted(dsn: str) -> None:
    """It is refused when the sink is made, in words of our own."""
    with pytest.raises(ConfigError, match="postgresql://user:password@host") as caught:
        PostgresSink(dsn, "SELECT %s")
    for part in (PASSWORD, QUOTED, "geheim", "raten"):
        assert part not in told(caught.value)


@pytest.mark.parametrize(
    "dsn",
    [f"{NOWHERE} password='{PASSWORD}'", f"postgresql://me:{QUOTED}@127.0.0.1:1/d"],
    ids=["pairs", "uri"],
)
def test_a_sink_that_cannot_connect_tells_no_password(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in the error, its causes, the log, the plan, nor what the driver has written."""
    caplog.set_level(logging.DEBUG)
    files, config = MemoryFiles(), ss.Config(processing_guarantee="exactly-once")
    topology = wired(PostgresSink(dsn, "SELECT %s"))
    plan = make_plan(topology, name="t", config=config, partitions=1)
    with (
        pytest.raises(CommitError, match="cannot connect") as caught,
        LocalRunner(topology, config=config, clock=ManualClock(), files=files),
    ):
        pass
    written = b"".join(files.read(name) or b"" for name in files.names(""))
    shown = [told(caught.value), caplog.text, repr(topology), repr(plan), explain(plan)]
    for text in [*shown, written.decode(errors="replace")]:
        assert PASSWORD not in text
        assert QUOTED not in text


@pytest.mark.parametrize(
    "name", ["sasl.password", "ssl.key.password", "ssl.key.pem", "sasl.oauthbearer.config"]
)
def test_properties_of_kafka_clients_are_not_shown(name: str) -> None:
    """They reach the client as they are; two clusters that differ in one are still two."""
    cluster = Cluster(bootstrap_servers="k:1", client={name: PASSWORD})
    spout = KafkaSpout("orders", group="g", bootstrap_servers="k:1", client={name: PASSWORD})
    assert cluster.properties()[name] == PASSWORD
    assert PASSWORD not in f"{cluster!r} {cluster.client!r} {spout!r} {vars(spout)!r}"
    assert PASSWORD not in told(ConfigError(f"the client says: no {PASSWORD}"))
    assert cluster.identity != Cluster(bootstrap_servers="k:1", client={name: "other one"}).identity


def test_credentials_of_zookeeper_are_not_shown() -> None:
    """Nor when somebody prints the very field."""
    store = ZooKeeperProgress(hosts="z:1", root="/r", id="i", auth=[("digest", PASSWORD)])
    assert store.auth[0] == ("digest", PASSWORD)
    assert PASSWORD not in f"{store!r} {store.auth!r}"


def test_settings_of_the_user_are_not_shown() -> None:
    """Those whose names say so, however deep they lie."""
    config = ss.Config.parse({"user.db_password": PASSWORD, "user.url": "http://host"})
    assert config.user["db_password"] == PASSWORD
    assert PASSWORD not in repr(config)
    assert "http://host" in repr(config)


def test_a_process_that_unpickles_a_secret_masks_it() -> None:
    """Executors get the topology pickled, and tell the driver of errors."""
    data = pickle.dumps([Secret(PASSWORD)])
    program = (
        "import pickle, sys; from sparkstorm.credentials import masked; "
        f"pickle.loads({data!r}); print(masked(sys.argv[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, f"no {PASSWORD}!"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "no ***!"


def test_other_values_stay_as_they_are() -> None:
    """Nothing but texts is hidden, and nothing that is no secret."""
    settings: dict[str, Any] = {"n": 1, "names": ["a"], "token": None, "group.id": "g"}
    assert hidden(settings) == settings
    assert masked("a g") == "a g"
