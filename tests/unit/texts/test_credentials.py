"""No secret is shown: by values, errors and their causes, logs, plans, or files of the driver."""

import logging
import pickle
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer

import sparkstorm as ss
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.cli.loading import load
from sparkstorm.cli.settings import parse_settings
from sparkstorm.errors import CommitError, ConfigError
from sparkstorm.kafka import KafkaSpout
from sparkstorm.kafka.client.troubles import make
from sparkstorm.kafka.cluster import Cluster
from sparkstorm.kafka.zookeeper import ZooKeeperProgress
from sparkstorm.planning.explain import explain
from sparkstorm.planning.passes import make_plan
from sparkstorm.postgres import PostgresSink
from sparkstorm.sources.spout_calls import calling
from sparkstorm.testing import LocalRunner, LogSpout, ManualClock, wait_until
from sparkstorm.texts import credentials
from sparkstorm.texts.credentials import Secret, hidden, masked

PASSWORD = "geheim/ni%cht raten"  # noqa: S105 - it opens nothing
QUOTED = "geheim%2Fni%25cht%20raten"
NOWHERE = "host=127.0.0.1 port=1 user=me dbname=d connect_timeout=2"


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins as a new process does, without the secrets of others."""
    monkeypatch.setattr(credentials, "_FORMS", {})
    monkeypatch.setattr(credentials, "_PATTERN", [])


def told(error: BaseException) -> str:
    """Everything that Python prints of an error."""
    return "".join(traceback.format_exception(error)) + repr(error)


def wired(sink: ss.Bolt | ss.BasicBolt | ss.CommitterBolt) -> ss.Topology:
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
        "postgresql://me:ge@heim@127.0.0.1:1/d",
        "postgresql://me:1/raten@127.0.0.1:1/d",
    ],
)
def test_an_address_that_cannot_be_read_is_not_quoted(dsn: str) -> None:
    """It is refused when the sink is made, in words of our own."""
    with pytest.raises(ConfigError, match="postgresql://user:password@host") as caught:
        PostgresSink(dsn, "SELECT %s")
    for part in (PASSWORD, QUOTED, "geheim", "raten", "heim@"):
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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("security.protocol", PASSWORD),
        ("sasl.pasword", PASSWORD),
        ("message.max.bytes", PASSWORD),
        ("ssl.key.pem", PASSWORD),
        ("sasl.jaas.config", f'PlainLoginModule required password="{PASSWORD}";'),
    ],
)
def test_a_client_that_refuses_a_property_tells_no_value(name: str, value: str) -> None:
    """Wherever somebody has put the password by mistake."""
    client = {"security.protocol": "SSL", name: value}
    with pytest.raises(ConfigError, match="refuses its properties") as caught:
        make(Producer, Cluster(bootstrap_servers="127.0.0.1:1", client=client))
    assert PASSWORD not in told(caught.value)


def test_a_property_that_is_misread_later_is_not_quoted() -> None:
    """The client tells its callback where in the value it stopped to understand."""
    client = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": True,
        "sasl.oauthbearer.config": "principal=me geheim=raten",
    }
    producer, troubles = make(Producer, Cluster(bootstrap_servers="127.0.0.1:1", client=client))
    wait_until(lambda: bool(troubles.last), check=lambda: producer.poll(0.1))
    assert "sasl.oauthbearer.config" in troubles.last
    assert "geheim" not in told(troubles.error("connect"))


def test_a_password_may_be_fetched_where_it_is_used() -> None:
    """Then it does not travel with the topology."""
    fetched: list[str] = []

    def fetch() -> str:
        fetched.append("once")
        return f"{PASSWORD} fetched"

    cluster = Cluster(bootstrap_servers="k:1", client={"sasl.password": fetch})
    assert fetched == []
    assert cluster.properties()["sasl.password"] == f"{PASSWORD} fetched"
    assert masked(f"no {PASSWORD} fetched!") == "no ***!"
    assert cluster.identity == cluster.identity
    sink = PostgresSink(lambda: f"{NOWHERE} password='{PASSWORD} there'", "SELECT %s")
    with pytest.raises(psycopg.OperationalError):
        sink.connect(ss.Config())
    assert masked(f"no {PASSWORD} there!") == "no ***!"
    unreadable = PostgresSink(lambda: PASSWORD, "SELECT %s")
    with pytest.raises(ConfigError, match="cannot read its address") as caught:
        unreadable.connect(ss.Config())
    assert PASSWORD not in told(caught.value)


class Closed(ss.Spout):
    """A spout whose library quotes its password."""

    outputs = ("n",)

    def __init__(self) -> None:
        self._password = Secret(PASSWORD)

    def open(self, config: ss.Config, context: ss.TaskContext, collector: Any) -> None:
        raise OSError(f"cannot log in with {str(self._password)!r}")

    def next_tuple(self) -> None:
        """Nothing."""


def test_an_error_of_a_spout_tells_no_secret() -> None:
    """Nor does what caused it, which Python prints as it is."""
    builder = ss.TopologyBuilder()
    builder.set_spout("in", Closed())
    runner = LocalRunner(builder.create_topology(), clock=ManualClock())
    with pytest.raises(ss.SparkstormError, match="cannot log in") as opened:
        runner.__enter__()
    with pytest.raises(ss.ComponentError, match="cannot log in") as called, calling("in", "ack"):
        raise OSError(f"cannot log in with {PASSWORD}")
    assert PASSWORD not in told(opened.value) + told(called.value)


def test_a_bolt_fails_a_message_without_telling_a_secret(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither the log nor the dead letter has it."""

    class Write(ss.BasicBolt):
        def __init__(self) -> None:
            self._password = Secret(PASSWORD)

        def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
            raise OSError(f"cannot log in with {self._password}")

    files = MemoryFiles()
    config = ss.Config(max_retries=0)
    with LocalRunner(wired(Write()), config=config, clock=ManualClock(), files=files) as runner:
        runner.run_until_idle()
    letters = [files.read(f"dead-letters/{name}") or b"" for name in files.names("dead-letters")]
    assert b"cannot log in with ***" in b"".join(letters)
    assert "cannot log in with ***" in caplog.text
    assert PASSWORD not in caplog.text
    assert PASSWORD.encode() not in b"".join(letters)


def test_a_setting_of_the_wrong_type_is_not_quoted(tmp_path: Path) -> None:
    """Where a password may be in it: among the user's own, and after ``--``."""
    with pytest.raises(ConfigError, match="'user'") as caught:
        ss.Config(user=f"password={PASSWORD}")
    assert PASSWORD not in told(caught.value)
    with pytest.raises(ConfigError, match="KEY=VALUE") as caught:
        parse_settings([f"user.password:{PASSWORD}"])
    assert PASSWORD not in told(caught.value)
    path = tmp_path / "plain.py"
    path.write_text("import sparkstorm as ss\ntopology = ss.TopologyBuilder()\n")
    with pytest.raises(ss.TopologyError, match="takes no arguments") as refused:
        load(str(path), [PASSWORD])
    assert PASSWORD not in told(refused.value)


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


@pytest.mark.process
def test_a_process_that_unpickles_a_secret_masks_it() -> None:
    """Executors get the topology pickled, and tell the driver of errors."""
    data = pickle.dumps([Secret(PASSWORD)])
    program = (
        "import pickle, sys; from sparkstorm.texts.credentials import masked; "
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
