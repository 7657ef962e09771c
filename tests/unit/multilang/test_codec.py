"""The codec: what children write is read, what parents write is plain; no I/O anywhere."""

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sparkstorm.errors import ProtocolError
from sparkstorm.multilang.codec import ChildCodec, ParentCodec
from sparkstorm.multilang.framing import JsonSerializer, Serializer, Stray
from sparkstorm.multilang.messages import (
    Ack,
    Command,
    Emit,
    Error,
    Fail,
    Handshake,
    Log,
    Metrics,
    Pid,
    ShellTuple,
    Sync,
    TaskIds,
    Unknown,
)
from sparkstorm.multilang.msgpack import MsgpackSerializer

IDS = st.text(min_size=1) | st.integers()
VALUES = st.lists(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=6,
    ),
    max_size=4,
)
CHILD = st.one_of(
    st.builds(Pid, st.integers(1)),
    st.builds(
        Emit,
        values=VALUES,
        stream=st.text(min_size=1),
        task=st.none() | st.integers(1),
        anchors=st.lists(st.text(min_size=1)).map(tuple),
        id=st.none() | IDS,
        need_task_ids=st.booleans(),
    ),
    st.builds(Ack, st.text(min_size=1)),
    st.builds(Fail, st.text(min_size=1)),
    st.just(Sync()),
    st.builds(Log, st.text(), st.integers(0, 4)),
    st.builds(Error, st.text()),
    st.builds(Metrics, st.text(), VALUES),
)
PARENT = st.one_of(
    st.builds(
        Handshake,
        conf=st.dictionaries(st.text(), st.integers()),
        context=st.dictionaries(st.text(), st.text()),
        pid_dir=st.text(),
    ),
    st.builds(
        ShellTuple,
        id=st.text(),
        comp=st.none() | st.text(),
        stream=st.text(min_size=1),
        task=st.integers(-1),
        values=VALUES,
    ),
    st.builds(Command, st.sampled_from(["next", "ack", "fail", "activate", "deactivate"]), IDS),
    st.builds(TaskIds, st.lists(st.integers(1)).map(tuple)),
)


def read(*chunks: bytes) -> list[Any]:
    codec = ParentCodec()
    return [
        message
        for frames in (*map(codec.receive, chunks), codec.receive_end())
        for message in frames
    ]


def framed(text: str, newline: str = "\n") -> bytes:
    return f"{text}{newline}end{newline}".encode()


@given(st.lists(CHILD, max_size=4), st.data())
def test_a_parent_reads_what_a_child_sends_however_it_is_cut(
    messages: list[Any], data: st.DataObject
) -> None:
    child = ChildCodec()
    written = b"".join(map(child.send, messages))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=6)))
    chunks = [written[a:b] for a, b in zip([0, *cuts], [*cuts, len(written)], strict=True)]
    assert read(*chunks) == messages


@given(st.lists(PARENT, max_size=4))
def test_a_child_reads_what_a_parent_sends_byte_by_byte(messages: list[Any]) -> None:
    parent, child = ParentCodec(), ChildCodec()
    written = b"".join(map(parent.send, messages))
    assert [m for i in range(len(written)) for m in child.receive(written[i : i + 1])] == messages


@given(PARENT)
def test_a_parent_sends_one_line_of_ascii_and_one_line_end(message: Any) -> None:
    text = ParentCodec().send(message).decode("ascii")
    first, end, rest = text.split("\n")
    assert json.loads(first) is not None
    assert (end, rest) == ("end", "")


@given(st.binary(max_size=200), st.integers(0, 200))
def test_no_bytes_do_more_than_a_protocol_error(noise: bytes, cut: int) -> None:
    """And wherever they are cut, the same comes out."""
    assert outcome(noise) == outcome(noise[:cut], noise[cut:])


TOKENS = st.sampled_from(
    [
        *(
            b"\n",
            b"\r\n",
            b"end",
            b"end\n",
            b"\nend\n",
            b"{",
            b"}",
            b'"',
            b"[",
            b"]",
            b",",
            b"1",
            b" ",
        ),
        *(b'{"command":', b'"emit"', b'"tuple":', b'"id":"1"', b'{"command":"sync"}', b'{"pid":1}'),
        *(b'"msg":"', b'"error"', b'"metrics"', b'"params":', b"\xef\xbb\xbf", b"\xff", b"\\"),
    ]
)


@pytest.mark.slow
@settings(max_examples=30_000, deadline=None)
@given(st.lists(TOKENS | st.binary(max_size=3), max_size=40), st.data())
def test_nothing_that_looks_like_the_protocol_does_more_than_an_error(
    pieces: list[bytes], data: st.DataObject
) -> None:
    """And wherever the bytes are cut, the same comes out."""
    written = b"".join(pieces)
    cut = data.draw(st.integers(0, len(written)))
    assert outcome(written) == outcome(written[:cut], written[cut:])


def outcome(*chunks: bytes) -> Any:
    try:
        return read(*chunks)
    except ProtocolError as error:
        return str(error)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_json_may_span_lines_and_lines_may_end_as_on_windows(newline: str) -> None:
    text = newline.join(["{", '  "command":', '  "ack", "id": "1"', "}"])
    assert read(framed(text, newline)) == [Ack("1")]


def test_a_byte_order_mark_is_passed_over() -> None:
    assert read(b"\xef\xbb\xbf" + framed('{"pid": 3}')) == [Pid(3)]


def test_text_beyond_ascii_comes_through() -> None:
    assert read(framed('{"command": "log", "msg": "größer ✓ 🦀"}')) == [Log("größer ✓ 🦀")]


def test_a_huge_message_in_small_pieces_is_read_in_one_pass() -> None:
    """Where the search began anew with each piece, this would take minutes."""
    written = ChildCodec().send(Emit(values=["x" * 20_000_000]))
    codec = ParentCodec()
    found: list[Any] = []
    for at in range(0, len(written), 4096):
        found += codec.receive(written[at : at + 4096])
    assert len(found[0].values[0]) == 20_000_000


def test_the_word_end_inside_of_a_message_ends_nothing() -> None:
    assert read(framed('{"command": "log",\n"msg":\n"end"}')) == [Log("end")]


def test_printed_text_is_told_and_the_message_behind_it_is_read() -> None:
    assert read(b"debug: x = {1}\n" + framed('{"command": "sync"}')) == [
        Stray("debug: x = {1}"),
        Sync(),
    ]


def test_text_printed_without_a_line_break_is_told_too() -> None:
    assert read(b"..." + framed('{"command": "sync"}')) == [Stray("..."), Sync()]


@pytest.mark.parametrize("text", ["hello", '{"command": "emit", "tuple": ["a}', "[[[", "", "5"])
def test_a_frame_without_a_message_is_an_error_that_quotes_it(text: str) -> None:
    with pytest.raises(ProtocolError, match="to standard error") as caught:
        read(framed(text))
    assert text[:12] in str(caught.value)


def test_messages_before_a_broken_frame_still_come() -> None:
    messages = ParentCodec().receive(framed('{"command": "sync"}') + framed("oops"))
    assert next(messages) == Sync()
    with pytest.raises(ProtocolError, match="oops"):
        next(messages)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"command": "error", "msg": "he said "no" to {x}"}', Error('he said "no" to {x}')),
        ('{"command":"log","msg":"a "b"\n c","level":3}', Log('a "b"\n c', 3)),
        ('{"command": "log", "msg": "C:\\dir"}', Log("C:\\dir")),
        ('{"command": "metrics", "name": "m", "params": "a "b""}', Metrics("m", 'a "b"')),
        ('{"command": "metrics", "name": "m", "params": a b}', Metrics("m", "a b")),
    ],
)
def test_text_that_an_adapter_left_unescaped_is_salvaged(text: str, message: Any) -> None:
    assert read(framed(text)) == [message]


def test_bytes_that_are_no_utf8_are_borne_in_a_log_and_refused_in_values() -> None:
    assert read(b'{"command": "log", "msg": "caf\xe9"}\nend\n') == [Log("caf\ufffd")]
    with pytest.raises(ProtocolError, match="no message"):
        read(b'{"command": "emit", "tuple": ["caf\xe9"]}\nend\n')


def test_what_some_languages_cannot_leave_out_counts_as_absent() -> None:
    """As gostorm writes it."""
    text = '{"command": "emit", "id": "", "stream": "", "task": 0, "anchors": null, "tuple": [1]}'
    assert read(framed(text)) == [Emit(values=[1])]


def test_task_ids_are_wanted_unless_the_child_says_no() -> None:
    yes, no = read(
        framed('{"command": "emit", "tuple": []}'),
        framed('{"command": "emit", "tuple": [], "need_task_ids": false}'),
    )
    assert (yes.need_task_ids, no.need_task_ids) == (True, False)


def test_one_anchor_may_stand_alone_and_ids_may_be_numbers() -> None:
    assert read(framed('{"command": "emit", "tuple": [], "anchors": "7"}')) == [
        Emit(values=[], anchors=("7",))
    ]
    assert read(framed('{"command": "ack", "id": 7}')) == [Ack("7")]


@pytest.mark.parametrize("msg_id", ["seven", 7, 7.5])
def test_ids_of_a_spout_stay_as_they_were_sent(msg_id: Any) -> None:
    (emit,) = read(framed(json.dumps({"command": "emit", "tuple": [], "id": msg_id})))
    assert (emit.id, type(emit.id)) == (msg_id, type(msg_id))


def test_a_log_without_level_is_info_and_odd_levels_too() -> None:
    texts = ('{"command": "log", "msg": "a"}', '{"command": "log", "msg": "a", "level": 9}')
    assert [message.level for text in texts for message in read(framed(text))] == [2, 2]


def test_an_unknown_command_is_told_with_its_fields() -> None:
    assert read(framed('{"command": "dance", "speed": 3}')) == [Unknown("dance", {"speed": 3})]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"msg": "x"}', "has no command"),
        ("[1]", "is an object with a command"),
        ('{"command": "ack"}', "needs the id"),
        ('{"command": "emit", "tuple": "ab"}', "list of values"),
        ('{"command": "emit", "tuple": [], "task": "x"}', "no whole number"),
        ('{"command": "emit", "tuple": [], "id": [1]}', "a text or a number"),
    ],
)
def test_a_message_that_lacks_something_says_what(text: str, fault: str) -> None:
    with pytest.raises(ProtocolError, match=fault):
        read(framed(text))


def test_the_last_end_may_lack_its_line_break() -> None:
    assert read(b'{"command": "sync"}\nend') == [Sync()]


def test_a_message_that_was_begun_when_the_child_ended_is_told() -> None:
    assert read(b'{"command": "em') == [Stray('{"command": "em')]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"x", {1, 2}, object()])
def test_a_value_that_json_does_not_have_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"JSON|float"):
        ParentCodec().send(ShellTuple(id="1", comp="a", stream="s", task=1, values=[value]))


def test_a_frame_that_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkstorm.multilang.framing._MOST_BYTES", 1000)
    with pytest.raises(ProtocolError, match="without a line 'end'"):
        ParentCodec().receive(b"x" * 2000)


# --- msgpack -------------------------------------------------------------------------------------


@given(st.lists(CHILD, max_size=4), st.integers(1, 7))
def test_msgpack_is_read_however_it_is_cut(messages: list[Any], size: int) -> None:
    """Its whole numbers have 64 bits."""
    assume(all(fits_msgpack(message) for message in messages))
    child, parent = ChildCodec(MsgpackSerializer()), ParentCodec(MsgpackSerializer())
    written = b"".join(map(child.send, messages))
    cut = [written[at : at + size] for at in range(0, len(written), size)]
    assert [message for chunk in cut for message in parent.receive(chunk)] == messages


def fits_msgpack(message: Any) -> bool:
    try:
        ChildCodec(MsgpackSerializer()).send(message)
    except ValueError:
        return False
    return True


def test_text_printed_between_messages_of_msgpack_is_told() -> None:
    child, parent = ChildCodec(MsgpackSerializer()), ParentCodec(MsgpackSerializer())
    assert list(parent.receive(b"splitting\n" + child.send(Sync()))) == [
        Stray("splitting"),
        Sync(),
    ]


def test_bytes_that_are_no_msgpack_message_are_an_error() -> None:
    with pytest.raises(ProtocolError, match="no message"):
        list(ParentCodec(MsgpackSerializer()).receive("größe".encode()))


@pytest.mark.parametrize(
    "serializer", [JsonSerializer(), MsgpackSerializer()], ids=["json", "msgpack"]
)
def test_what_was_begun_is_counted_so_that_it_can_be_read_later(serializer: Serializer) -> None:
    written = ChildCodec(serializer).send(Ack("1234"))
    codec = ParentCodec(serializer)
    assert list(codec.receive(written + written[:5])) == [Ack("1234")]
    assert codec.unread == 5
