"""A connection whose every answer has a time limit."""

import time
from collections.abc import Generator
from typing import Any, final

from sparkstorm.postgres.address import conninfo, psycopg

__all__ = ["TimedConnection", "connect"]

_SETTINGS = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}


@final
class TimedConnection(psycopg.Connection[Any]):  # type: ignore[misc]
    """A connection that raises, instead of waiting for ever, if the server falls silent.

    PostgreSQL's own limits (``statement_timeout``) are of no use here: the server watches them.
    """

    answer_secs: float = 8.0

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """Run a step of psycopg's, at most for ``answer_secs``."""
        return super().wait(_limited(gen, self.answer_secs), *args, **options)


def connect(dsn: str, name: str, timeout_secs: float) -> TimedConnection:
    """Connect; ``name`` shows in ``pg_stat_activity``, unless the address gives another."""
    given = conninfo.conninfo_to_dict(dsn)
    defaults = {
        "connect_timeout": max(2, round(timeout_secs)),
        "fallback_application_name": name,
        **_SETTINGS,
    }
    missing = {key: value for key, value in defaults.items() if key not in given}
    # As keywords: a text of ours with the password in it would be masked by nobody.
    made: TimedConnection = TimedConnection.connect(dsn, autocommit=True, **missing)
    made.answer_secs = timeout_secs
    return made


def _limited(gen: Any, secs: float) -> Generator[Any, Any, Any]:
    """Pass everything on; raise once nothing has come for some seconds."""
    deadline = time.monotonic() + secs
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > deadline:
                raise psycopg.OperationalError(f"no answer within {secs:g} s")
            wanted = gen.send(ready)
    except StopIteration as end:
        return end.value
