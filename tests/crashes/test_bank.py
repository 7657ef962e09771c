"""Money is neither made nor lost, whatever dies: transfers are applied exactly once."""

from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from sparkstorm.testing.servers import PostgresServer

pytestmark = pytest.mark.e2e


@pytest.fixture(autouse=True)
def _postgres(
    absent: Callable[[str], NoReturn], started: Callable[[PostgresServer], PostgresServer]
) -> None:
    """What the loop needs, beside Java."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        absent("psycopg is not installed")
    with started(PostgresServer()):
        pass


def test_transfers_while_things_die(run_loop: Callable[..., dict[str, Any]]) -> None:
    """The driver, a worker, and the connection to the database."""
    options = ["--transfers", "800", "--victims", "driver,worker,connections"]
    assert len(run_loop("bank_loop.py", *options)["killed"]) == 3


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_transfers_while_many_things_die(run_loop: Callable[..., dict[str, Any]]) -> None:
    """Four times each; the database itself, too."""
    victims = ",".join(4 * ["driver", "worker", "connections", "database"])
    options = ["--transfers", "20000", "--victims", victims, "--minutes", "45"]
    assert sum(run_loop("bank_loop.py", *options, secs=3500)["killed"].values()) == 16
