"""A table as a queue: the suite of all queues on a real PostgreSQL, and troubles of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

from sparkstorm.errors import ConfigError, EnvironmentFault
from sparkstorm.postgres import PostgresQueueSpout, QueueTable
from sparkstorm.postgres.queue import PostgresQueue
from sparkstorm.postgres.server import Postgres
from sparkstorm.queues import QueueLostError
from sparkstorm.testing.queues import QueueBench, QueueConformance
from sparkstorm.testing.servers import PostgresServer
from tests.queues.postgres_bench import JOBS, PostgresBench, make_table, run

try:
    import psycopg
except ImportError:
    psycopg = None

pytestmark = pytest.mark.e2e

LEASE_SECS = 1.0


@pytest.fixture
def server(postgres: PostgresServer) -> PostgresServer:
    """The server of this file."""
    return postgres


class TestPostgresTable(QueueConformance):
    """PostgreSQL keeps the promises of all queues."""

    server: ClassVar[PostgresServer]

    @pytest.fixture(autouse=True)
    def _with_server(self, server: PostgresServer) -> None:
        type(self).server = server

    @contextmanager
    def bench(self) -> Iterator[QueueBench]:
        yield PostgresBench(self.server, LEASE_SECS)


def queue_of(server: PostgresServer, table: QueueTable = JOBS, **options: Any) -> PostgresQueue:
    return PostgresQueue(Postgres(address=server.dsn, timeout_secs=2), table, "test", **options)


def test_rows_of_a_higher_priority_come_first_and_done_rows_stay(server: PostgresServer) -> None:
    """Names of columns are the user's, whatever characters they hold."""
    table = QueueTable(name='q.my "jobs"', body="Pay load", priority="urgency", done="done at")
    make_table(server, table)
    for body, urgency in ((b"a", 0), (b"b", 5), (b"c", 0)):
        statement = 'INSERT INTO q."my ""jobs""" ("Pay load", urgency) VALUES (%s, %s)'
        run(server, statement, body, urgency)
    queue = queue_of(server, table)
    queue.connect()
    taken = queue.take(5, 0)
    assert [one.body for one in taken] == [b"b", b"a", b"c"]
    assert queue.settle([one.lease for one in taken]) == ()
    assert queue.take(5, 0) == []
    queue.close()
    counted = 'SELECT count(*) FROM q."my ""jobs""" WHERE "done at" IS NOT NULL'
    assert run(server, counted) == [(3,)]


def test_a_lease_that_another_has_taken_is_not_extended(server: PostgresServer) -> None:
    """The number of attempts fences the lease, although one consumer's name is the other's."""
    make_table(server, JOBS)
    run(server, "INSERT INTO q.jobs (body) VALUES ('a')")
    one, two = queue_of(server, lease_secs=30), queue_of(server, lease_secs=30)
    one.connect()
    two.connect()
    (first,) = one.take(1, 0)
    assert two.take(1, 0) == []
    assert one.extend([first.lease]) == []
    run(server, "UPDATE q.jobs SET locked_until = now() - interval '1s'")
    two.connect()
    (second,) = two.take(1, 0)
    assert (second.message_id, second.deliveries) == (first.message_id, 2)
    assert one.extend([first.lease]) == [first.lease]
    one.give_back([first.lease])
    assert two.extend([second.lease]) == []
    one.close()
    two.close()


def test_a_notification_ends_the_wait(server: PostgresServer) -> None:
    """With an hour between two looks, a new row arrives all the same."""
    make_table(server, JOBS)
    queue = queue_of(server, poll_secs=3600)
    queue.connect()
    assert queue.take(1, 0) == []
    run(server, "INSERT INTO q.jobs (body) VALUES ('a')")
    assert [one.body for one in queue.take(1, 60)] == [b"a"]
    queue.close()


def test_a_row_that_someone_has_locked_is_settled_later(server: PostgresServer) -> None:
    """A user's own transaction holds up neither the leases nor the other rows for ever."""
    make_table(server, JOBS)
    run(server, "INSERT INTO q.jobs (body) VALUES ('a')")
    queue = queue_of(server)
    queue.connect()
    (taken,) = queue.take(1, 0)
    with psycopg.connect(server.dsn) as connection:
        connection.execute("SELECT * FROM q.jobs FOR UPDATE")
        assert list(queue.settle([taken.lease])) == [taken.lease]
    assert list(queue.settle([taken.lease])) == []
    assert run(server, "SELECT count(*) FROM q.jobs") == [(0,)]
    queue.close()


@pytest.mark.parametrize("kind", ["text", "jsonb", "bytea"])
def test_payloads_of_any_type_become_bytes(server: PostgresServer, kind: str) -> None:
    """NULL is an empty body."""
    make_table(server, JOBS)
    run(server, f"ALTER TABLE q.jobs ALTER body TYPE {kind} USING NULL")
    run(server, f"INSERT INTO q.jobs (body) VALUES ('[1]'::{kind}), (NULL)")  # noqa: S608
    queue = queue_of(server)
    queue.connect()
    assert [one.body for one in queue.take(2, 0)] == [b"[1]", b""]
    queue.close()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DROP TABLE q.jobs", "no such table .*postgres-queue-ddl"),
        ("ALTER TABLE q.jobs DROP attempts", "no column attempts, but id, body, locked_until"),
        ("ALTER TABLE q.jobs ALTER locked_until TYPE timestamp", "locked_until has the type"),
        ("ALTER TABLE q.jobs ALTER attempts TYPE text", "attempts has the type text: give it"),
        ("ALTER TABLE q.jobs DROP CONSTRAINT jobs_pkey", "column id is not unique"),
    ],
)
def test_a_table_that_is_no_queue_is_refused(
    server: PostgresServer, statement: str, said: str
) -> None:
    """Each mistake is named, with its mend, when the spout connects."""
    make_table(server, JOBS)
    if "timestamp" in statement or "TYPE text" in statement:
        run(
            server,
            "ALTER TABLE q.jobs ALTER locked_until DROP DEFAULT, ALTER attempts DROP DEFAULT",
        )
    run(server, statement)
    with pytest.raises(EnvironmentFault, match=said):
        queue_of(server).connect()


def test_a_user_without_rights_is_refused(server: PostgresServer) -> None:
    """The missing right is granted by the words of the error."""
    make_table(server, JOBS)
    run(server, "DROP ROLE IF EXISTS reader")
    run(server, "CREATE ROLE reader LOGIN")
    run(server, "GRANT USAGE ON SCHEMA q TO reader")
    run(server, "GRANT SELECT ON q.jobs TO reader")
    dsn = server.dsn.replace("postgres@", "reader@")
    with pytest.raises(EnvironmentFault, match=r'GRANT UPDATE ON "q".*jobs'):
        PostgresQueue(Postgres(address=dsn), JOBS, "test").connect()
    run(server, "DROP OWNED BY reader")


@pytest.mark.parametrize(("old", "new"), [("postgres@", "nobody@"), ("/postgres", "/nowhere")])
def test_a_refused_login_is_no_lost_connection(server: PostgresServer, old: str, new: str) -> None:
    """No later try helps, so the run ends at once."""
    dsn = new.join(server.dsn.rsplit(old, 1))
    with pytest.raises(EnvironmentFault, match="does not exist"):
        PostgresQueue(Postgres(address=dsn), JOBS, "test").connect()


def test_a_standby_is_waited_for(server: PostgresServer) -> None:
    """After a failover the server takes changes."""
    make_table(server, JOBS)
    dsn = f"{server.dsn}?options=-cdefault_transaction_read_only%3Don"
    with pytest.raises(QueueLostError, match="takes no changes"):
        PostgresQueue(Postgres(address=dsn), JOBS, "test").connect()


class TestMistakes:
    """Mistakes that show where the spout is made, without a server."""

    @pytest.mark.parametrize(
        ("table", "options", "said"),
        [
            ("", {}, "has no name"),
            ("q.", {}, "has no name"),
            ("jobs", {"lease_secs": 0}, "lease_secs is 0"),
            ("jobs", {"poll_secs": 0}, "poll_secs is 0"),
            ("jobs", {"dsn": "postgresql://me:ge@heim@host/db"}, "not shown here"),
        ],
    )
    def test_arguments_are_checked(self, table: str, options: dict[str, Any], said: str) -> None:
        """No password is in any message."""
        with pytest.raises(ConfigError, match=said) as caught:
            PostgresQueueSpout(table, **{"dsn": "postgresql://host/db", **options})
        assert "heim" not in str(caught.value)
