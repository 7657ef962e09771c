"""Text files as they come: packed, marked, in other encodings, damaged."""

import bz2
import codecs
import gzip
import lzma
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparkstorm as ss
from sparkstorm.checkpoint.files import LocalFiles, MemoryFiles
from sparkstorm.components.context import TaskContext
from sparkstorm.dead_letters import DeadLetter, LetterStore
from sparkstorm.errors import ConfigError, SpoutConnectionError
from sparkstorm.sources.partitioned.payloads import read_payloads
from sparkstorm.spouts import LinesSpout, text_files
from sparkstorm.streams import declare
from sparkstorm.tasks.reading.splits import Row, read_rows


def zstd(data: bytes) -> bytes:
    """Pack bytes as the command line tool does."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstd,
}


class Picky(ss.BasicBolt):
    """Emits what it sees; fails a "bad" line at its first attempt."""

    outputs = "line string"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if "bad" in tup[0] and tup.attempt == 1:
            raise ValueError(tup[0])
        collector.emit([tup[0]])


def wired(spout: LinesSpout) -> ss.Topology:
    """Build a topology that emits the lines of a spout again."""
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", spout)
    builder.set_bolt("show", Picky(), parallelism=2).shuffle_grouping("lines")
    return builder.create_topology()


def opened(spout: LinesSpout) -> LinesSpout:
    """Open a spout as its only task."""
    context = TaskContext(
        topology="t", component="lines", task=0, tasks={"lines": range(1)}, config=ss.Config()
    )
    spout.open(ss.Config(), context)
    return spout


def splits_of(spout: LinesSpout, limit: int) -> Iterable[ss.Split]:
    """Plan a spout to its end."""
    while splits := spout.plan(limit):
        yield from splits


def rows_of(spout: LinesSpout, split: ss.Split) -> list[Row]:
    """Read all messages of a split, each as it is for a letter."""
    every = split.narrow(range(split.count))
    return read_rows(spout, every, declare(spout.outputs)["default"])


def read_all(spout: LinesSpout, limit: int = 3) -> list[Any]:
    """Read all lines of a spout; what cannot be read is itself in the result."""
    rows = [row for split in splits_of(opened(spout), limit) for row in rows_of(spout, split)]
    assert spout.exhausted()
    return [row[0] if isinstance(row, tuple) else row for row in rows]


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_packed_file_is_read_as_text(run_topology: Any, tmp_path: Path, suffix: str) -> None:
    """Failed lines come again, although nobody can begin in the middle of such a file."""
    path = tmp_path / f"a.{suffix}"
    lines = [f"bad {n}" if n % 7 == 0 else f"line {n}" for n in range(50)]
    path.write_bytes(PACKERS[suffix]("\n".join(lines).encode()))
    config = {"batch_max_messages": 9, "retry_backoff_secs": 0}
    with run_topology(wired(LinesSpout(path)), config) as play:
        statistics = play.drain()
        assert sorted(play.emitted("show")) == sorted((line,) for line in lines)
    assert (statistics.acked, statistics.given_up) == (50, 0)


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("content", [b"", b"\n", b"one\n\ntwo", b"one\r\ntwo\r\n"])
def test_the_name_of_a_packed_file_says_nothing(
    tmp_path: Path, suffix: str, content: bytes
) -> None:
    """A packed file without the suffix is unpacked, a text with the suffix is read as it is."""
    (tmp_path / "plain.gz").write_bytes(content)
    (tmp_path / "packed").write_bytes(PACKERS[suffix](content))
    plain = read_all(LinesSpout(tmp_path / "plain.gz"))
    assert plain == content.decode().splitlines()
    assert read_all(LinesSpout(tmp_path / "packed")) == plain


def test_a_text_may_begin_like_a_packed_file(tmp_path: Path) -> None:
    """``BZh1`` alone is text."""
    (tmp_path / "a.txt").write_bytes(b"BZh1 is a magic\nPK is one, too\n")
    assert read_all(LinesSpout(tmp_path / "a.txt")) == ["BZh1 is a magic", "PK is one, too"]


def test_packed_files_of_several_members_are_read_whole(tmp_path: Path) -> None:
    """``cat a.gz b.gz`` is a packed file."""
    paths = [tmp_path / suffix for suffix in PACKERS]
    for path in paths:
        pack = PACKERS[path.name]
        path.write_bytes(pack(b"one\ntw") + pack(b"o\nthree"))
    assert read_all(LinesSpout(*paths)) == ["one", "two", "three"] * len(paths)


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_packed_file_that_is_cut_short_is_named(tmp_path: Path, suffix: str) -> None:
    """Its last lines are missing, and nobody else could tell."""
    path = tmp_path / f"a.{suffix}"
    packed = PACKERS[suffix](b"".join(b"line %d\n" % n for n in range(10_000)))
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(SpoutConnectionError, match=rf"cannot unpack .*a\.{suffix}.*not whole"):
        read_all(LinesSpout(path), limit=1_000)


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_packed_file_that_is_damaged_is_named(tmp_path: Path, suffix: str) -> None:
    """No line of it is made up."""
    path = tmp_path / f"a.{suffix}"
    packed = bytearray(PACKERS[suffix](b"".join(b"line %d\n" % n for n in range(10_000))))
    middle = len(packed) // 2
    packed[middle : middle + 40] = bytes(byte ^ 0xA5 for byte in packed[middle : middle + 40])
    path.write_bytes(packed)
    with pytest.raises(SpoutConnectionError, match=rf"cannot unpack .*a\.{suffix}"):
        read_all(LinesSpout(path), limit=1_000_000)


def test_an_archive_is_refused_at_the_start(tmp_path: Path) -> None:
    """A zip file holds files, not lines."""
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04" + bytes(26))
    with pytest.raises(SpoutConnectionError, match="is a zip archive: unpack it"):
        opened(LinesSpout(tmp_path / "a.zip"))


def test_each_packed_file_is_unpacked_once_whatever_the_number_of_splits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several partitions in one process read on, each from the nearest place before."""
    opens: list[str] = []

    def opener(path: str) -> Any:
        opens.append(path)
        return gzip.open(path)

    monkeypatch.setattr(text_files, "_OPENERS", {"gzip": opener})
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x\n" * 4_000))
    spout = opened(LinesSpout(tmp_path / "a.gz"))
    splits = list(splits_of(spout, limit=10))
    assert len(splits) == 400
    for start in range(0, 400, 4):
        for split in reversed(splits[start : start + 4]):
            assert rows_of(spout, split) == [("x",)] * 10
    assert len(opens) <= 6  # its form, the driver, and four partitions


def test_a_restart_goes_on_in_the_middle_of_a_packed_file(run_locally: Any, tmp_path: Path) -> None:
    """Each line comes once."""
    lines = [f"line {number}" for number in range(20)]
    (tmp_path / "a.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    files, config = MemoryFiles(), {"batch_max_messages": 4}
    with run_locally(wired(LinesSpout(tmp_path / "a.gz")), config, files=files) as first:
        for _ in range(2):
            first.runner.step()
    with run_locally(wired(LinesSpout(tmp_path / "a.gz")), config, files=files) as second:
        second.drain()
    assert first.statistics().acked + second.statistics().acked == 20
    with run_locally(wired(LinesSpout(tmp_path / "a.gz")), config, files=files) as third:
        assert third.drain().acked == 0


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_a_byte_order_mark_tells_the_encoding_and_is_dropped(
    tmp_path: Path, mark: bytes, encoding: str
) -> None:
    """Windows writes such files; U+0A0D and U+0D0A hold the bytes of line ends."""
    lines = ["žluťoučký", "", "\u0a0d\u0d0a", "😀 €"]
    for name, end in (("lf", "\n"), ("crlf", "\r\n")):
        data = mark + "".join(line + end for line in lines).encode(encoding)
        (tmp_path / name).write_bytes(data)
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(data))
        for limit in (1, 3, 100):
            assert read_all(LinesSpout(tmp_path / name), limit) == lines
            assert read_all(LinesSpout(tmp_path / f"{name}.gz"), limit) == lines
    (tmp_path / "mark alone").write_bytes(mark)
    assert read_all(LinesSpout(tmp_path / "mark alone")) == []


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "shift_jis", "utf-16", "UTF_8_sig"])
def test_the_encoding_is_a_setting(run_locally: Any, tmp_path: Path, encoding: str) -> None:
    """Any of Python's encodings will do that has the line ends of ASCII or Unicode."""
    lines = ["one", "ソ表" if encoding == "shift_jis" else "café"]
    (tmp_path / "a.txt").write_bytes("\n".join(lines).encode(encoding))
    with run_locally(wired(LinesSpout(tmp_path / "a.txt", encoding=encoding))) as play:
        play.drain()
        assert [row[0] for row in play.emitted("lines")] == lines


@pytest.mark.parametrize("encoding", ["utf8x", "hex", "rot13", "cp037", "unicode_escape", "", 7])
def test_an_encoding_that_cannot_be_read_is_refused(encoding: Any) -> None:
    """At once: not one line could be found."""
    with pytest.raises(ConfigError, match=r"encoding .* is none that LinesSpout reads"):
        LinesSpout("a.txt", encoding=encoding)


def letters_of(files: MemoryFiles | LocalFiles) -> list[DeadLetter]:
    """Return the letters beside a checkpoint."""
    return list(LetterStore(files).letters())


@pytest.mark.parametrize("last", [b"fine", b"\xe9\xff", b"\xe9\xff\n"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_line_that_cannot_be_decoded_is_a_dead_letter_with_its_bytes(
    run_locally: Any, tmp_path: Path, pack: Callable[[bytes], bytes], last: bytes
) -> None:
    """The other lines go on; the letter names the file, the line and the setting."""
    (tmp_path / "a.txt").write_bytes(pack(b"one\ncaf\xe9\nbad\n" + last))
    files = MemoryFiles()
    config = {"retry_backoff_secs": 0}
    with run_locally(wired(LinesSpout(tmp_path / "a.txt")), config, files=files) as play:
        statistics = play.drain()
        emitted = sorted(row[0] for row in play.emitted("show"))
    odd = [b"caf\xe9", b"\xe9\xff"] if last != b"fine" else [b"caf\xe9"]
    assert emitted == sorted(["bad", "one", "fine"][: 3 - (last != b"fine")])
    assert (statistics.given_up, statistics.failed) == (len(odd), len(odd) + 1)
    letters = letters_of(files)
    assert sorted((letter.source or {})["bytes"] for letter in letters) == odd
    first = next(letter for letter in letters if letter.msg_id[1] == 2)
    assert "line 2 of" in first.failure.message
    assert "is not utf-8: unexpected end of data at byte 3" in first.failure.message
    assert "encoding='cp1252'" in first.failure.message
    assert (first.values, first.attempts) == (None, 1)


def test_half_a_character_at_the_end_is_no_character(tmp_path: Path) -> None:
    """Of UTF-16, a file of an odd number of bytes is cut short."""
    (tmp_path / "a.txt").write_bytes("one\ntwo".encode("utf-16") + b"x")
    spout = opened(LinesSpout(tmp_path / "a.txt"))
    (split,) = spout.plan(10)
    first, second = rows_of(spout, split)
    assert first == ("one",)
    assert isinstance(second, ss.Unreadable)
    assert "truncated data" in second.why
    letter = split.narrow([1])
    (payload,) = read_payloads(spout, letter, declare(spout.outputs)["default"])
    assert payload.origin == {"bytes": "two".encode("utf-16-le") + b"x"}


def test_lines_cut_off_since_the_plan_have_expired_though_others_do_not_decode(
    tmp_path: Path,
) -> None:
    """Each position has its own end."""
    (tmp_path / "a.txt").write_bytes(b"one\ncaf\xe9\nthree\nfour\n")
    spout = opened(LinesSpout(tmp_path / "a.txt"))
    (split,) = spout.plan(10)
    (tmp_path / "a.txt").write_bytes(b"one\ncaf\xe9\nth")
    one, odd, *gone = rows_of(spout, split)
    assert one == ("one",)
    assert isinstance(odd, ss.Unreadable)
    assert gone == [ss.EXPIRED, ss.EXPIRED]


@settings(max_examples=60, deadline=None)
@given(
    data=st.lists(st.sampled_from([b"\n", b"\r\n", b"a", b"\xc3\xa9", b"\xff", b"\0"])),
    limit=st.integers(1, 5),
    pack=st.sampled_from([bytes, *PACKERS.values()]),
    block=st.sampled_from([4, 8, 1 << 20]),
)
def test_every_line_is_read_once_whatever_it_holds(
    tmp_path_factory: pytest.TempPathFactory,
    data: list[bytes],
    limit: int,
    pack: Callable[[bytes], bytes],
    block: int,
) -> None:
    """However the file is packed, cut into splits and read: as Python reads it, line by line."""
    path = tmp_path_factory.mktemp("lines") / "a"
    content = b"".join(data)
    path.write_bytes(pack(content))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "BLOCK", block)
        patch.setattr("sparkstorm.spouts.lines.BLOCK", block)
        found = read_all(LinesSpout(path), limit)
    wanted = content.split(b"\n")
    if not wanted[-1]:
        wanted.pop()
    assert len(found) == len(wanted)
    for line, raw in zip(found, wanted, strict=True):
        if b"\xff" in raw:
            assert isinstance(line, ss.Unreadable)
        else:
            assert line in (raw.decode(), raw.removesuffix(b"\r").decode())
