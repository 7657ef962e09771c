"""Dead letters as values and as files: JSON there and back, filters, ages, requests, sinks."""

import datetime
import json
import logging
import math
import uuid
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparkstorm as ss
from sparkstorm.checkpoint.files import LocalFiles, MemoryFiles
from sparkstorm.dead_letters import DeadLetter, DeadLetterQueue, LetterStore, Unwritable
from sparkstorm.dead_letters.letter import letter_id
from sparkstorm.dead_letters.requests import RequestBox
from sparkstorm.dead_letters.selection import Selection, by_id, parse_age
from sparkstorm.dead_letters.values import from_json, is_whole, to_json
from sparkstorm.errors import CheckpointError, ConfigError
from sparkstorm.testing import ManualClock

ZONES = st.sampled_from(
    [None, datetime.UTC, ZoneInfo("Europe/Berlin"), datetime.timezone(datetime.timedelta(hours=3))]
)
HASHABLE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False),
    st.text(),
    st.binary(),
    st.decimals(allow_nan=False),
    st.uuids(),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.datetimes(timezones=ZONES, allow_imaginary=False),
)
VALUES = st.recursive(
    HASHABLE,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(HASHABLE, inner, max_size=4),
        st.frozensets(HASHABLE, max_size=4),
        st.sets(HASHABLE, max_size=4),
    ),
    max_leaves=12,
)


def letter(**changes: Any) -> DeadLetter:
    values: dict[str, Any] = {
        "id": "ab01",
        "topology": "t",
        "run": "r",
        "spout": "orders",
        "task": 0,
        "stream": "default",
        "fields": ("a", "b"),
        "values": (1, b"x"),
        "msg_id": ("topic", 3),
        "failure": ss.Failure(reason=ss.Reason.ERROR, component="parse", message="no"),
        "attempts": 3,
        "first_time": 10.0,
        "last_time": 20.0,
    }
    return DeadLetter(**{**values, **changes})


class TestValues:
    @given(VALUES)
    def test_there_and_back(self, value: Any) -> None:
        """A value comes back equal and of the same type, through JSON text."""
        back = from_json(json.loads(json.dumps(to_json(value))))
        assert back == value
        assert type(back) is type(value)
        assert is_whole(back)

    def test_not_a_number_comes_back(self) -> None:
        assert math.isnan(from_json(to_json(math.nan)))

    def test_a_dict_with_our_tag_as_key_comes_back(self) -> None:
        assert from_json(to_json({"$": "bytes", "v": "eA=="})) == {"$": "bytes", "v": "eA=="}

    def test_a_named_zone_keeps_its_summer_time(self) -> None:
        moment = datetime.datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
        later = from_json(to_json(moment)) + datetime.timedelta(days=180)
        assert later.utcoffset() == datetime.timedelta(hours=1)

    def test_what_cannot_be_written_is_kept_as_text(self) -> None:
        """It comes back as a stand-in that is not whole, also from deep inside."""
        back = from_json(json.loads(json.dumps(to_json({"a": [object]}))))
        assert back == {"a": [Unwritable("builtins.type", "<class 'object'>")]}
        assert not is_whole(back)
        assert from_json(to_json(back)) == back

    def test_values_that_contain_themselves_end(self) -> None:
        circle: list[Any] = []
        circle += [circle, circle]
        assert not is_whole(from_json(to_json(circle)))

    def test_a_broken_repr_and_a_huge_integer_are_borne(self) -> None:
        class Broken:
            def __repr__(self) -> str:
                raise ValueError("no")

        assert "whose repr raises ValueError" in to_json(Broken())["v"]
        assert to_json(10**5000)["$"] == "repr"

    def test_an_unknown_tag_is_refused(self) -> None:
        with pytest.raises(ValueError, match="unknown tag 'pickle'"):
            from_json({"$": "pickle", "v": ""})


class TestLetter:
    @given(st.lists(VALUES, max_size=3), HASHABLE, st.dictionaries(st.text(), VALUES, max_size=2))
    def test_there_and_back(self, values: list[Any], msg_id: Any, source: dict[str, Any]) -> None:
        """Every field of a letter survives its line of JSON."""
        names = tuple(f"f{n}" for n in range(len(values)))
        one = letter(fields=names, values=tuple(values), msg_id=msg_id, source=source)
        assert DeadLetter.from_json(json.loads(json.dumps(one.to_json()))) == one

    def test_what_is_replayable(self) -> None:
        assert letter().replayable
        assert letter().payload == {"a": 1, "b": b"x"}
        assert not letter(values=None).replayable
        assert not letter(values=(1, Unwritable("x.Y", "<Y>"))).replayable

    def test_its_id_is_that_of_the_message(self) -> None:
        """Every part of a message's name counts, and the order of a set does not."""
        parts: dict[str, Any] = {
            "topology": "t",
            "spout": "s",
            "stream": "default",
            "msg_id": 1,
            "values": ({"a", "b", "c"},),
        }
        base = letter_id(**parts)
        assert letter_id(**{**parts, "values": ({"c", "b", "a"},)}) == base
        others = {"topology": "u", "spout": "r", "stream": "x", "msg_id": "1", "values": (1,)}
        assert all(letter_id(**{**parts, name: other}) != base for name, other in others.items())


@pytest.fixture(params=["memory", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> LetterStore:
    return LetterStore(MemoryFiles() if request.param == "memory" else LocalFiles(tmp_path))


class TestStore:
    def test_letters_are_there_until_they_are_removed(self, store: LetterStore) -> None:
        store.write([letter(id="a1"), letter(id="b2")])
        store.write([letter(id="c3", last_time=30.0)])
        assert [one.id for one in store.letters()] == ["a1", "b2", "c3"]
        store.remove(["a1", "c3"])
        assert [one.id for one in store.letters()] == ["b2"]
        assert len(store.names()) == 1

    def test_a_letter_written_twice_is_one(self, store: LetterStore) -> None:
        """After a crash the same letters are written again; the newest counts."""
        both = [letter(id="a1"), letter(id="b2")]
        assert store.write(both) == store.write(both)
        store.write([letter(id="a1", attempts=9, last_time=30.0)])
        assert {one.id: one.attempts for one in store.letters()} == {"a1": 9, "b2": 3}
        store.remove(["a1"])
        assert [one.id for one in store.letters()] == ["b2"]

    def test_replace_leaves_one(self, store: LetterStore) -> None:
        store.write([letter(id="a1"), letter(id="b2")])
        store.replace([letter(id="a1", replays=1, last_time=30.0)])
        assert {one.id: one.replays for one in store.letters()} == {"b2": 0, "a1": 1}
        assert {len(names) for names in store.places().values()} == {1}

    def test_only_these_files_are_looked_into(self) -> None:
        """Whoever has been told where letters lie need not have all files read."""
        store = LetterStore(MemoryFiles())
        one = store.write([letter(id="a1")])
        store.write([letter(id="a1", last_time=30.0), letter(id="b2")])
        places = {found.id: names for found, names in store.placed(["a1", "c3"])}
        assert places == {"a1": tuple(store.names())}
        store.remove(["a1", "b2"], [one])
        assert [found.id for found in store.letters()] == ["a1", "b2"]

    def test_a_damaged_line_stays_when_others_go(self) -> None:
        """People may want to mend it; no removal may end a run for it."""
        files = MemoryFiles()
        store = LetterStore(files)
        name = f"dead-letters/{store.write([letter(id='a1')])}"
        half = b'{"version": 1, "half a li\n[]\n'
        files.write(name, (files.read(name) or b"") + half)
        store.remove(["a1"])
        seal, _, rest = (files.read(name) or b"").partition(b"\n")
        assert rest == half
        files.write(name, seal + b"\n")
        store.remove(["a1"])
        with pytest.raises(CheckpointError, match=r"damaged .* 0 are there.*delete its first line"):
            store.read(name.removeprefix("dead-letters/"))

    def test_a_damaged_line_is_named(self) -> None:
        files = MemoryFiles()
        store = LetterStore(files)
        name = store.write([letter()])
        files.write(f"dead-letters/{name}", b'{"version": 1}\n')
        with pytest.raises(CheckpointError, match=f"line 1 of dead-letters/{name}"):
            list(store.letters())

    @given(
        st.lists(
            st.one_of(
                st.tuples(st.just("write"), st.lists(st.integers(0, 5), min_size=1, max_size=3)),
                st.tuples(st.just("remove"), st.lists(st.integers(0, 5), max_size=3)),
                st.tuples(st.just("replace"), st.lists(st.integers(0, 5), min_size=1, max_size=3)),
            )
        )
    )
    def test_it_is_a_dict_by_id(self, steps: list[tuple[str, list[int]]]) -> None:
        """Whatever is done in whatever order, it holds what a dict would hold."""
        store = LetterStore(MemoryFiles())
        model: dict[str, float] = {}
        for time, (step, ids) in enumerate(steps):
            letters = [letter(id=f"{n:04x}", last_time=float(time)) for n in dict.fromkeys(ids)]
            if step == "remove":
                store.remove([one.id for one in letters])
                model = {i: t for i, t in model.items() if int(i, 16) not in ids}
                continue
            if step == "write":
                store.write(letters)
            else:
                store.replace(letters)
            model.update({one.id: one.last_time for one in letters})
        assert {one.id: one.last_time for one in store.letters()} == model


class TestRequests:
    def test_a_request_is_there_until_it_is_done(self, store: LetterStore) -> None:
        box = RequestBox(store)
        asked = box.ask([letter(id="a1"), letter(id="b2", replays=2)], wall=5.0, rate=1.5)
        assert box.names() == [asked.name]
        assert box.read(asked.name) == asked
        assert asked.letters == {"a1": 0, "b2": 2}
        assert list(store.letters()) == []
        box.done(asked.name)
        assert box.names() == []
        assert box.read(asked.name) is None


class TestSelection:
    @pytest.mark.parametrize(
        ("selection", "taken"),
        [
            (Selection(), True),
            (Selection(topology="t"), True),
            (Selection(topology="other"), False),
            (Selection(component="orders"), True),
            (Selection(component="parse"), True),
            (Selection(component="sink"), False),
            (Selection(reason=ss.Reason.ERROR), True),
            (Selection(reason=ss.Reason.LOST), False),
            (Selection(older_than=79), True),
            (Selection(older_than=80), False),
            (Selection(newer_than=81), True),
            (Selection(newer_than=80), False),
            (Selection(topology="t", reason=ss.Reason.LOST), False),
        ],
    )
    def test_filters(self, selection: Selection, taken: bool) -> None:
        assert selection.takes(letter(last_time=20.0), now=100.0) is taken

    @given(st.integers(0, 10**6), st.sampled_from("smhdw"))
    def test_ages(self, number: int, unit: str) -> None:
        secs = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}[unit]
        assert parse_age(f"{number}{unit}") == number * secs

    @pytest.mark.parametrize("text", ["", "2", "h", "-1h", "2 hours", "1e3s"])
    def test_no_age(self, text: str) -> None:
        with pytest.raises(ConfigError, match="no age"):
            parse_age(text)

    def test_ids_may_be_abbreviated_if_one_is_meant(self) -> None:
        letters = [letter(id="ab01"), letter(id="ab12"), letter(id="cd34")]
        assert [one.id for one in by_id(letters, ["c", "AB1"])] == ["cd34", "ab12"]
        with pytest.raises(ConfigError, match=r"'ab' may be one of 2 .*ab01, ab12"):
            by_id(letters, ["ab"])
        for unknown in ("ff", ""):
            with pytest.raises(ConfigError, match="there is no dead letter"):
                by_id(letters, [unknown])


class TestQueue:
    def dead_letters(self) -> DeadLetterQueue:
        return DeadLetterQueue("t", LetterStore(MemoryFiles()), ManualClock())

    def test_letters_go_to_the_files(self) -> None:
        dead_letters = self.dead_letters()
        dead_letters.writer(ss.Config()).write([letter()])
        assert list(dead_letters.store.letters()) == [letter()]
        assert (dead_letters.written, dead_letters.sink_faults) == (1, 0)

    def test_off_keeps_nothing(self) -> None:
        dead_letters = self.dead_letters()
        dead_letters.writer(ss.Config(dead_letters="off")).write([letter()])
        assert (list(dead_letters.store.letters()), dead_letters.written) == ([], 0)

    def test_a_sink_takes_them_instead(self) -> None:
        dead_letters, taken = self.dead_letters(), list[Any]()
        dead_letters.writer(ss.Config(dead_letter_sink=taken.append)).write([letter()])
        assert taken == [[letter()]]
        assert (list(dead_letters.store.letters()), dead_letters.written) == ([], 1)

    def test_a_sink_that_raises_loses_nothing(self, caplog: pytest.LogCaptureFixture) -> None:
        """The letters go to the files; an error line and a counter say so."""

        def sink(letters: list[DeadLetter]) -> None:
            raise OSError("the table is gone")

        dead_letters = self.dead_letters()
        with caplog.at_level(logging.ERROR):
            dead_letters.writer(ss.Config(dead_letter_sink=sink)).write([letter()])
        assert list(dead_letters.store.letters()) == [letter()]
        assert (dead_letters.written, dead_letters.sink_faults) == (1, 1)
        assert "the table is gone" in caplog.text

    @pytest.mark.parametrize("sink", ["no.such:thing", "json:nothing", "json", "math:pi"])
    def test_a_sink_that_is_not_there_is_refused(self, sink: str) -> None:
        with pytest.raises(ConfigError, match="dead_letter_sink"):
            self.dead_letters().writer(ss.Config(dead_letter_sink=sink))


def test_values_of_typed_streams_are_whole() -> None:
    """What Arrow gives back for each declared type can be written."""
    now = datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
    values = [1, 2.5, "x", b"y", True, Decimal("1.50"), now, now.date(), [1], {"a": 1}]
    assert from_json(to_json(values)) == values
    assert replace(letter(), values=(uuid.UUID(int=1), now)).replayable
