"""Records of any bytes, times and headers: the fault of one is never the fault of another."""

import datetime
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.components.spout import Unreadable
from sparkstorm.dead_letters.values import from_json, to_json
from sparkstorm.kafka.cluster import Partition
from sparkstorm.kafka.formats import WithRecord, reader_of
from sparkstorm.kafka.records import FIELDS, KeptRecord, Shape, kept_size, origin_of, to_kept

PLACE = Partition("orders", 3)

Headers = Sequence[tuple[str, bytes | None]] | None


class Line:
    """A record as a client gives it; a client raises at names of headers that are not UTF-8."""

    def __init__(
        self, at: int, key: bytes | None, value: bytes | None, millis: int, headers: Headers
    ) -> None:
        self.at, self.name, self.data, self.millis, self.more = at, key, value, millis, headers

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes | None:
        return self.name

    def value(self) -> bytes | None:
        return self.data

    def timestamp(self) -> tuple[int, int]:
        return (0, -1) if self.millis == -1 else (1, self.millis)

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        if self.more and any(name == "broken" for name, _ in self.more):
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
        return None if self.more is None else list(self.more)


maybe_bytes = st.none() | st.binary(max_size=12) | st.sampled_from([b'{"a":1}', b"[", b"[" * 5000])
moments = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 10**13)
headers = st.none() | st.lists(
    st.tuples(st.text(max_size=3) | st.just("broken"), maybe_bytes), max_size=3
)
parts = st.tuples(maybe_bytes, maybe_bytes, moments, headers)
readers = st.sampled_from(["bytes", "string", "json"]).map(reader_of)  # type: ignore[arg-type]
shapes = st.builds(
    Shape,
    st.lists(st.sampled_from(sorted(FIELDS)), min_size=1, unique=True).map(tuple),
    readers,
    readers | st.just(WithRecord(lambda data, record: (data, record.timestamp, record.headers))),
    st.booleans(),
)


def rows_of(made: Any, position: int) -> list[dict[str, Any]]:
    return [
        {name: values[n] for name, values in made.columns.items()}
        for n, place in enumerate(made.positions)
        if place == position
    ]


@given(shapes, st.lists(parts, max_size=6))
def test_a_record_among_others_is_read_as_if_it_were_alone(shape: Shape, given: Any) -> None:
    lines = [Line(10 + n, *one) for n, one in enumerate(given)]
    together = shape.messages(PLACE, 10, lines)
    for line in lines:
        alone = shape.messages(PLACE, 10, [line])
        place = line.at - 10
        assert repr(rows_of(together, place)) == repr(rows_of(alone, place))
        assert together.unfit.get(place) == alone.unfit.get(place)
        if line.data is not None and not shape.many:
            assert len(rows_of(alone, place)) + len(alone.unfit) == 1


@given(parts)
def test_a_letter_has_the_bytes_and_the_coordinates_whatever_they_are(given: Any) -> None:
    line = Line(7, *given)
    origin = from_json(to_json(origin_of(line)))
    assert (origin["offset"], origin["key"], origin["value"]) == (7, line.name, line.data)
    assert origin["millis"] == (None if line.millis == -1 else line.millis)
    if isinstance(origin["timestamp"], datetime.datetime):
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        millis = (origin["timestamp"] - epoch) // datetime.timedelta(milliseconds=1)
        assert millis == line.millis


@given(parts)
def test_a_record_that_is_kept_stays_the_record_it_was(given: Any) -> None:
    line = Line(7, *given)
    data = to_kept(line)
    assert kept_size(data) > 0
    assert origin_of(KeptRecord(7, data)) == origin_of(line)


def test_a_time_in_microseconds_is_named() -> None:
    shape = Shape(("timestamp",), reader_of("bytes"), reader_of("bytes"))
    odd = 1_700_000_000_000_000
    made = shape.messages(PLACE, 0, [Line(n, None, b"v", odd if n == 1 else n, ()) for n in (0, 1)])
    assert made.positions == [0]
    [fault] = made.unfit.values()
    assert isinstance(fault, Unreadable)
    assert f"its timestamp is unreadable: ValueError: {odd} is no time" in fault.why
    assert "not microseconds" in fault.why
