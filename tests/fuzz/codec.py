"""Fuzz the codec of the multi-language protocol, guided by the coverage of its code.

    python -m tests.fuzz.codec -max_total_time=180

It needs atheris (``pip install atheris``). Arguments are libFuzzer's. It ends with an error, and
keeps the input in a file, when bytes of a child or a parent break what the codec promises.
"""

import sys
import tempfile
from pathlib import Path

import atheris

from tests.tools.plain import load_plain_python

load_plain_python()  # the coverage of a compiled module cannot be seen

with atheris.instrument_imports(include=["sparkstorm.multilang"]):
    from sparkstorm.errors import ProtocolError
    from sparkstorm.multilang.codec import ChildCodec, ParentCodec
    from sparkstorm.multilang.framing import JsonSerializer, Stray
    from sparkstorm.multilang.messages import to_wire

SEEDS = (
    b'{"pid":7}\nend\n',
    b'{"command":"emit","tuple":["a",1],"anchors":["1"],"need_task_ids":false}\r\nend\r\n',
    b'hello\n{"command":"error","msg":"a "quoted" word"}\nend\n[1,2]\nend\n',
    b'{"command":"metrics","name":"n","params":"{"a":1}"}\nend\n{"command":"log","level":9}\nend\n',
    b'{"id":"1","comp":null,"stream":"__heartbeat","task":-1,"tuple":[]}\nend\n',
    b'{"pidDir":"/tmp","conf":{},"context":{}}\nend\n{"command":"next"}\nend\n',
)


def check(data: bytes) -> None:
    """Check one input; its first byte says where the rest is cut."""
    cut, stream = (data[0], data[1:]) if data else (0, b"")
    cut %= len(stream) + 1
    whole = _frames(stream)
    if whole != _frames(stream[:cut], stream[cut:]):
        raise AssertionError(f"{stream!r} reads differently when cut at {cut}")
    for codec in (ParentCodec, ChildCodec):
        _check_messages(codec, stream)


def _frames(*parts: bytes) -> str:
    reader, fed, found = JsonSerializer().reader(), 0, []
    for part in parts:
        found += reader.feed(part)
        fed += len(part)
        if not 0 <= reader.unread <= fed:
            raise AssertionError(f"{reader.unread} of {fed} bytes are unread")
    return repr(found + reader.close())


def _check_messages(codec: "type[ParentCodec | ChildCodec]", stream: bytes) -> None:
    """Check that messages come out, or a ProtocolError, and that they can be written and read."""
    one = codec()
    try:
        messages = [*one.receive(stream), *one.receive_end()]
    except ProtocolError:
        return
    for message in messages:
        if isinstance(message, Stray):
            continue
        try:
            data = JsonSerializer().encode(to_wire(message))
        except ValueError:  # NaN is read, and not written
            continue
        if repr(list(codec().receive(data))) != repr([message]):
            raise AssertionError(f"{message} is written as {data!r} and read as something else")


def _write_seeds(folder: Path) -> None:
    """Write each seed once for each place where it can be cut, and check it there."""
    for number, seed in enumerate(SEEDS):
        for cut in range(len(seed) + 1):
            check(bytes([cut]) + seed)
            (folder / f"{number}-{cut}").write_bytes(bytes([cut]) + seed)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as corpus:
        _write_seeds(Path(corpus))
        atheris.Setup([*sys.argv, corpus], check)
        atheris.Fuzz()
