"""The address of a PostgreSQL, as psycopg and libpq take it; the only file that loads psycopg."""

import re

from sparkstorm.errors import ConfigError, EnvironmentFault
from sparkstorm.texts.credentials import Secret

try:
    import psycopg
    from psycopg import conninfo, sql
except ImportError as error:
    raise EnvironmentFault(
        "PostgreSQL needs the package psycopg: pip install 'sparkstorm[postgres]'"
    ) from error

__all__ = ["checked", "conninfo", "psycopg", "sql"]

_MISREAD = re.compile(r"\s*postgres(?:ql)?://(?:[^@/]*@[^@]*@|[^@/]*/[^@]*@)")
"""A URI with an @ or / in its password: the text behind it passes for a host or a database."""


def checked(dsn: str, whose: str) -> Secret:
    """Return the address, if libpq reads it correctly, with no part of a password as the host.

    Errors of libpq itself quote the text, so they are not passed on.
    """
    secret = Secret(dsn)
    try:
        conninfo.conninfo_to_dict(dsn)
        if not _MISREAD.match(dsn):
            return secret
    except psycopg.ProgrammingError:
        pass
    raise ConfigError(
        f"{whose} cannot read its address (not shown here, since it may hold a "
        "password): write postgresql://user:password@host:port/database, with special "
        "characters as %XX, or key=value pairs, with quotes around values that hold spaces"
    )
