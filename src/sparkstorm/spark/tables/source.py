"""The format ``sparkstorm``: PySpark's data source over the tables of a checkpoint."""

import datetime
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, final

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from sparkstorm.errors import ConfigError
from sparkstorm.spark.tables.desk import Address, Desk, ask
from sparkstorm.spark.tables.pieces import Piece
from sparkstorm.spark.tables.schemas import SCHEMAS

__all__ = ["register"]

_EACH = 1_000
"""The most pieces of one partition of a read."""

_DESKS: dict[str, Desk] = {}
"""The desks of this process by Spark application."""


def register(session: SparkSession) -> None:
    """Make ``format("sparkstorm")`` known to a session: the tables of a checkpoint.

    Options are ``checkpoint``, the folder on any file system of the session, and ``table`` (or the
    argument of ``load``): ``messages``, ``attempts``, ``dead_letters``, ``partitions`` or
    ``state``. A read never waits for a running topology, and never holds it up. ::

        sparkstorm.spark.register(spark)
        reader = spark.read.format("sparkstorm").option("checkpoint", "/data/checkpoint")
        reader.load("messages").where("state = 'waiting'").show()
    """
    application = session.sparkContext.applicationId
    if application not in _DESKS:
        _DESKS[application] = Desk(session)
    address = _DESKS[application].address

    class Registered(_TableSource):
        """The source of this session: Spark calls it with options alone."""

        def __init__(self, options: Mapping[str, str]) -> None:
            super().__init__(options, address)

    session.dataSource.register(Registered)


class _TableSource(DataSource):
    """One table of one checkpoint.

    Args:
        options: the options of the read.
        address: the driver's desk; executors, who need none, are not told.
    """

    def __init__(self, options: Mapping[str, str], address: Address | None = None) -> None:
        super().__init__(options)  # type: ignore[arg-type]
        self._address = address

    def __reduce__(self) -> Any:
        return _TableSource, (dict(self.options), self._address)

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "sparkstorm"

    def schema(self) -> str:
        """Return the columns of the table."""
        return SCHEMAS[self._table()]

    def reader(self, schema: StructType) -> "_TableReader":
        """Return the reader, which takes the address with it."""
        checkpoint = self.options.get("checkpoint")
        if not checkpoint:
            raise ConfigError(
                "the format sparkstorm reads a checkpoint: name it by .option('checkpoint', DIR)"
            )
        address, self._address = self._address, None
        return _TableReader(self._table(), checkpoint, address)

    def _table(self) -> str:
        table = self.options.get("table") or self.options.get("path")
        if table not in SCHEMAS:
            given = "no table is named" if not table else f"there is no table {table!r}"
            raise ConfigError(f"{given}: load one of {', '.join(SCHEMAS)}")
        return str(table)


@final
class _Pieces(InputPartition):
    """The pieces that one task makes rows of."""

    def __init__(self, pieces: tuple[bytes, ...]) -> None:
        self.pieces = pieces


@final
class _TableReader(DataSourceReader):
    """Asks the driver in the planning process, and makes rows in the executors."""

    def __init__(self, table: str, checkpoint: str, address: Address | None) -> None:
        self._table = table
        self._checkpoint = checkpoint
        self._address = address
        columns = SCHEMAS[table].split(", ")
        self._times = [n for n, column in enumerate(columns) if column.endswith(" timestamp")]

    def __reduce__(self) -> Any:
        return _TableReader, (self._table, self._checkpoint, None)

    def partitions(self) -> list[InputPartition]:
        """Return the pieces of the table, as the driver reads them now."""
        assert self._address is not None  # noqa: S101 - this is the planning process
        pieces = (one.to_json() for one in ask(self._address, self._table, self._checkpoint))
        found: list[InputPartition] = []
        while some := tuple(islice(pieces, _EACH)):
            found.append(_Pieces(some))
        return found or [_Pieces(())]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of some pieces."""
        assert isinstance(partition, _Pieces)  # noqa: S101 - partitions made it
        for data in partition.pieces:
            for row in Piece.from_json(data).rows():
                yield self._typed(row)

    def _typed(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        if not self._times:
            return row
        values = list(row)
        for place in self._times:
            if values[place] is not None:
                values[place] = datetime.datetime.fromtimestamp(values[place], datetime.UTC)
        return tuple(values)
