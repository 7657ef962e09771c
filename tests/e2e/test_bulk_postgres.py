"""A bulk writer into a real PostgreSQL: whatever happens to it, each row is there once."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import pytest

import sparkstorm as ss
from sparkstorm.bolts import BulkWriterBolt
from sparkstorm.testing import (
    PATIENCE_SECS,
    FeederSpout,
    LocalRunner,
    ManualClock,
    RequeueSpout,
)
from sparkstorm.testing.servers import PostgresServer

try:
    import psycopg
except ImportError:
    psycopg = None

pytestmark = pytest.mark.e2e

UPSERT = """
    insert into readings (sensor, value) values (%s, %s)
    on conflict (sensor) do update set value = excluded.value
"""


class Readings(BulkWriterBolt):
    """Writes readings in one transaction each time; a second write of the same changes nothing."""

    flush_size = 100

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    def write(self, tuples: Sequence[ss.Tuple]) -> None:
        with psycopg.connect(self.dsn, connect_timeout=5) as connection:
            connection.cursor().executemany(UPSERT, [tuple(tup.values) for tup in tuples])
            connection.execute("insert into writes values (%s)", [len(tuples)])


@pytest.fixture
def postgres(
    absent: Callable[[str], NoReturn], started: Callable[[PostgresServer], PostgresServer]
) -> Iterator[PostgresServer]:
    """A server with the two tables."""
    if psycopg is None:
        absent("psycopg is not installed")
    with started(PostgresServer()) as server:
        with psycopg.connect(server.dsn) as connection:
            connection.execute(
                "create table readings (sensor bigint primary key, value double precision,"
                " check (value >= 0))"
            )
            connection.execute("create table writes (rows bigint)")
        yield server


def select(server: PostgresServer, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(server.dsn) as connection:
        rows: list[tuple[Any, ...]] = connection.execute(query).fetchall()
        return rows


def wired(spout: Any, server: PostgresServer) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("sensors", spout)
    builder.set_bolt("write", Readings(server.dsn)).shuffle_grouping("sensors")
    return builder.create_topology()


def test_rows_are_written_a_hundred_at_a_time(postgres: PostgresServer) -> None:
    """And what is left, at the end of the batch."""
    spout = RequeueSpout([[n, n / 2] for n in range(250)], "sensor long, value double")
    with LocalRunner(wired(spout, postgres), clock=ManualClock()) as runner:
        assert runner.run_until_idle().acked == 250
    assert select(postgres, "select * from readings order by sensor") == [
        (n, n / 2) for n in range(250)
    ]
    assert select(postgres, "select * from writes") == [(100,), (100,), (50,)]


def test_what_it_refuses_fails_with_its_reason(postgres: PostgresServer) -> None:
    """All of that write and nothing else; the database has none of it."""
    feeder = FeederSpout("sensor long, value double")
    for n in range(150):
        feeder.feed([n, -1.0 if n == 120 else 1.0], msg_id=n)
    with LocalRunner(wired(feeder, postgres), clock=ManualClock()) as runner:
        runner.run_until_idle()
    assert feeder.acked == list(range(100))
    assert feeder.failed == list(range(100, 150))
    assert "CheckViolation" in feeder.failures[0].message
    assert select(postgres, "select count(*) from readings") == [(100,)]


def test_a_crash_of_the_database_loses_nothing(postgres: PostgresServer) -> None:
    """While it is away writes fail and messages are tried again; then all is there, once."""
    spout = RequeueSpout([[n, 1.0] for n in range(500)], "sensor long, value double")
    clock, config = ManualClock(), ss.Config(batch_max_messages=120, max_retries=None)
    with LocalRunner(wired(spout, postgres), clock=clock, config=config) as runner:
        runner.step()
        runner.step()
        postgres.kill()
        runner.step()
        statistics = runner.statistics()
        assert statistics.failed == 0  # the verdict comes with the next batch
        runner.step()
        assert runner.statistics().failures["failed"] >= 120
        postgres.start()
        statistics = runner.run_until_idle()
    assert (statistics.acked, statistics.pending) == (500, 0)
    assert select(postgres, "select count(*), sum(value) from readings") == [(500, 500.0)]


@pytest.mark.slow
def test_on_spark(postgres: PostgresServer, spark: Any) -> None:
    """The workers write; the module travels to them."""
    import sys

    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    feeder = FeederSpout("sensor long, value double")
    for n in range(1_000):
        feeder.feed([n, 1.0], msg_id=n)
    feeder.end()
    config = ss.Config(message_timeout_secs=600)
    with ss.submit(wired(feeder, postgres), config=config, session=spark) as run:
        assert run.wait_until_drained(PATIENCE_SECS)
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    assert select(postgres, "select count(*), sum(value) from readings") == [(1000, 1000.0)]
    assert select(postgres, "select max(rows) from writes") == [(100,)]
