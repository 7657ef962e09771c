"""The values with which the source answers Spark's JVM."""

from typing import Any

import pytest

from sparkstorm.spark.rows import LOADS_DDL
from sparkstorm.spark.source_internals import SourceValues, batch_of

pytestmark = pytest.mark.spark


@pytest.fixture
def values(spark: Any) -> SourceValues:
    return SourceValues(spark, LOADS_DDL)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 100_001])
def test_a_row_holds_the_partition_and_its_loads(values: SourceValues, size: int) -> None:
    """Whatever the loads' length leaves of the last eight bytes."""
    loads = bytes(n * 7 % 256 for n in range(size))
    row = values.row(2**31 - 1, loads)
    assert row.getInt(0) == 2**31 - 1
    assert bytes(row.getBinary(1)) == loads
    assert row.getSizeInBytes() % 8 == 0


def test_each_partition_has_the_row_of_its_loads(values: SourceValues) -> None:
    """Partitions without loads are not planned at all."""
    first, third = values.partitions([(0, b"zero"), (2, b"two")])
    for partition, dest, loads in ((first, 0, b"zero"), (third, 2, b"two")):
        (row,) = partition.records()
        assert (row.getInt(0), bytes(row.getBinary(1))) == (dest, loads)
    assert len(values.partitions([])) == 0


def test_an_offset_is_the_number_of_the_next_batch(values: SourceValues) -> None:
    """Spark keeps its text, and compares offsets by it."""
    offset = values.offset(7)
    assert offset.json() == '{"batch": 7}'
    assert offset.equals(values.offset_of('{"batch": 7}'))
    assert batch_of(offset) == 7
