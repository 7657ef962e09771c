"""The Python data source of a topology, as Spark loads it. The reader is in ``reader``."""

from typing import final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructType

from sparkstorm.spark.link import LinkClient
from sparkstorm.spark.reader.offsets import PlanReader
from sparkstorm.spark.rows import LOADS_DDL

__all__ = ["SparkstormSource"]


@final
class SparkstormSource(DataSource):
    """Gives Spark the coordinator's planned batches; options: ``link`` and ``token``."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "sparkstorm"

    def schema(self) -> str:
        """Return the columns: a row for each partition with something to read."""
        return LOADS_DDL

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader, in the reader process."""
        return PlanReader(LinkClient(self.options["link"], self.options["token"]))
