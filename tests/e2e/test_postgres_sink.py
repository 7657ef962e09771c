"""The sink for PostgreSQL: each transaction once, whatever happens in the middle of it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import pytest

import sparkstorm as ss
from sparkstorm.errors import EnvironmentFault
from sparkstorm.testing import LocalRunner, LogSpout, ManualClock
from sparkstorm.testing.servers import PostgresServer

try:
    import psycopg

    from sparkstorm.postgres import PostgresSink
except (ImportError, EnvironmentFault):
    psycopg = None
    PostgresSink = ss.CommitterBolt  # type: ignore[assignment,misc]

pytestmark = pytest.mark.e2e

ROWS = [[n, f"word {n}"] for n in range(50)]
ONCE = ss.Config(
    processing_guarantee="exactly-once", batch_max_messages=10, batch_min_messages=10, max_retries=2
)
INSERT = "insert into words values (%s, %s)"


@pytest.fixture(scope="module")
def server(
    absent: Callable[[str], NoReturn], started: Callable[[PostgresServer], PostgresServer]
) -> Iterator[PostgresServer]:
    """A server."""
    if psycopg is None:
        absent("psycopg is not installed")
    with started(PostgresServer()) as server:
        yield server


@pytest.fixture
def dsn(server: PostgresServer) -> str:
    """A database with an empty table."""
    with psycopg.connect(server.dsn) as connection:
        connection.execute("drop table if exists words, sparkstorm_transactions")
        connection.execute("create table words (n bigint, word text check (word <> 'word 33'))")
    return server.dsn


class BreaksInTheMiddle(PostgresSink):
    """Loses its connection after half of its writes, or all of them; each time once."""

    transient = ("left",)
    left = 2

    def apply(self, cursor: Any, staged: Sequence[Any]) -> None:
        half = len(staged) // max(self.left, 1)
        super().apply(cursor, staged[:half])
        if self.left > 0:
            self.left -= 1
            with psycopg.connect(self._dsn, autocommit=True) as other:
                pid = cursor.connection.info.backend_pid
                other.execute("select pg_terminate_backend(%s)", [pid])
        super().apply(cursor, staged[half:])


def topology(sink: ss.CommitterBolt, rows: Sequence[Sequence[Any]] = ROWS) -> ss.Topology:
    """Rows, written."""
    builder = ss.TopologyBuilder()
    builder.set_spout("words", LogSpout(rows, "n long, word string", split_rows=5))
    builder.set_bolt("sink", sink, 2).shuffle_grouping("words")
    return builder.create_topology()


def rows_of(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        rows: list[tuple[Any, ...]] = connection.execute(query).fetchall()
        return rows


def run(sink: ss.CommitterBolt, rows: Sequence[Sequence[Any]] = ROWS) -> None:
    """Run it on a checkpoint of its own."""
    with LocalRunner(topology(sink, rows), config=ONCE, clock=ManualClock()) as runner:
        runner.run_until_idle()


GOOD = [row for row in ROWS if row[0] != 33]


def test_each_batch_is_one_transaction(dsn: str) -> None:
    """Five batches, with their numbers, under one owner."""
    run(PostgresSink(dsn, INSERT), GOOD)
    assert rows_of(dsn, "select * from words order by n") == [tuple(row) for row in GOOD]
    [(owner, txid)] = rows_of(dsn, "select owner, txid from sparkstorm_transactions")
    assert owner.startswith("local/")
    assert owner.endswith("/sink")
    assert txid == 4
    assert len(rows_of(dsn, "select distinct xmin::text from words")) == 5


def test_another_checkpoint_counts_anew(dsn: str) -> None:
    """Else all that it writes would pass for applied."""
    run(PostgresSink(dsn, INSERT), GOOD[:20])
    run(PostgresSink(dsn, INSERT), GOOD[20:])
    assert len(rows_of(dsn, "select * from words")) == len(GOOD)
    assert len(rows_of(dsn, "select * from sparkstorm_transactions")) == 2


def test_a_connection_that_breaks_in_the_middle_leaves_nothing(dsn: str) -> None:
    """The transaction is rolled back, and applied again on a new connection."""
    run(BreaksInTheMiddle(dsn, INSERT), GOOD)
    assert rows_of(dsn, "select * from words order by n") == [tuple(row) for row in GOOD]


def test_the_same_transaction_again_does_nothing(dsn: str) -> None:
    """Nor does an earlier one."""
    sink = PostgresSink(dsn, INSERT)
    sink.connect(ss.Config())
    for txid in (7, 7, 5):
        transaction = ss.Transaction(txid=txid, owner="me", time=0.0)
        sink.commit(transaction, [(txid, "once")])
    sink.disconnect()
    assert rows_of(dsn, "select n from words") == [(7,)]


def test_what_the_database_refuses_ends_the_run(dsn: str) -> None:
    """With its reason; nothing of that batch is there, all before it is."""
    with pytest.raises(ss.CommitError, match=r"transaction 3 in 3 tries: CheckViolation"):
        run(PostgresSink(dsn, INSERT))
    assert len(rows_of(dsn, "select * from words")) == 30


def test_a_server_that_is_away_is_said_at_the_start() -> None:
    """And nothing shows the password."""
    sink = PostgresSink("postgresql://postgres:geheim@127.0.0.1:1/postgres", INSERT)
    with pytest.raises(ss.CommitError, match="'sink' cannot connect: OperationalError") as caught:
        run(sink)
    assert "geheim" not in f"{caught.value}{caught.value.__cause__}{sink!r}"
