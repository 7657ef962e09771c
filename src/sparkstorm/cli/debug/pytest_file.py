"""The test of a dead letter: a file for pytest, with the payload as a fixture."""

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from sparkstorm.cli.debug.literals import literal, quoted
from sparkstorm.cli.loading import Loaded
from sparkstorm.cli.terminal import say
from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.errors import ConfigError
from sparkstorm.streams import DEFAULT_STREAM
from sparkstorm.texts.credentials import holds_secret, looks_secret
from sparkstorm.texts.showing import as_json, visible

__all__ = ["PytestFile"]

_LONGEST_LITERAL = 2_000
"""The most characters of a payload in the test itself; a longer one is a file beside the test."""

_LONGEST_WHY = 300

_MODULES = ("datetime", "decimal", "importlib", "runpy", "uuid", "zoneinfo")
_OURS = {
    "sparkstorm": ("Config", "Topology"),
    "sparkstorm.flux": ("load_flux",),
    "sparkstorm.testing": ("read_payload", "run_message"),
}
"""All that a test may need: of these it imports the names that it uses."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PytestFile:
    """A test that fails until a bolt is mended.

    Attributes:
        path: the file.
        letter: the dead letter.
        loaded: the topology.
        target: the topology's place, as on the command line.
        args: the topology's arguments.
        settings: the settings of the command line.
        until: the last bolt that runs.
        state: the keys and values of stateful bolts.
    """

    path: Path
    letter: DeadLetter
    loaded: Loaded
    target: str
    args: Sequence[str] = ()
    settings: Sequence[str] = ()
    until: str
    state: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict)

    def write(self) -> list[Path]:
        """Write the file, and the letter's JSON beside it if the payload has no short literal.

        Raises:
            ConfigError: a file is there already, or cannot be written.
        """
        files = {self.path: self.text()}
        if self._payload() is None:
            files[self._json] = as_json(self.letter.to_json()) + "\n"
        for path in files:
            if path.exists():
                raise ConfigError(f"{str(path)!r} is there already: choose another name")
        try:
            for path, text in files.items():
                path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"cannot write {str(self.path)!r}: {error.strerror}. Choose another place"
            ) from error
        return list(files)

    def text(self) -> str:
        """Return the test's text."""
        body = "\n\n\n".join((self._topology_fixture(), self._payload_fixture(), self._test()))
        return f'"""{self._title()}\n"""\n\n{self._imports(body)}\n\n\n{body}\n'

    @property
    def _json(self) -> Path:
        return self.path.with_suffix(".json")

    def _title(self) -> str:
        lines = (
            f"The dead letter {visible(self.letter.id)} of the topology {self.letter.topology!r}.",
            "",
            f"The test fails until the bolt {self.until!r} is mended. The letter says:",
            visible(str(self.letter.failure), _LONGEST_WHY),
        )
        return "\n".join(line.replace("\\", "\\\\").replace('"', "'") for line in lines)

    def _imports(self, body: str) -> str:
        used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
        return "\n".join(
            [
                *(f"import {module}" for module in _MODULES if module in used),
                *(["from pathlib import Path"] if "Path" in used else []),
                "from typing import Any",
                "",
                "import pytest",
                *(
                    f"from {module} import {', '.join(chosen)}"
                    for module, names in _OURS.items()
                    if (chosen := [name for name in names if name in used])
                ),
            ]
        )

    def _topology_fixture(self) -> str:
        head = "@pytest.fixture\ndef topology(monkeypatch: pytest.MonkeyPatch) -> Topology:\n"
        return head + "".join(f"    {line}\n" for line in self._loading()).rstrip()

    def _loading(self) -> Iterator[str]:
        expression = self.loaded.expression.replace("(args)", f"({literal(list(self.args))})")
        path = self.loaded.path
        if path is None:
            module = self.target.partition(":")[0]
            yield f"monkeypatch.syspath_prepend({self._relative(self.loaded.folder)})"
            yield f"return importlib.import_module({quoted(module)}).{expression}"
            return
        yield f"folder = {self._relative(path.resolve().parent)}"
        yield "monkeypatch.syspath_prepend(folder)"
        if expression:
            name = re.match(r"\w+", expression)
            assert name is not None  # noqa: S101 - it begins with a name
            made = f"[{quoted(name[0])}]{expression[name.end() :]}"
            yield f"return runpy.run_path(str(folder / {quoted(path.name)})){made}"
        else:
            properties = dict(pair.partition("=")[::2] for pair in self.args)
            yield f"return load_flux(folder / {quoted(path.name)}, {literal(properties)}).topology"

    def _relative(self, folder: Path) -> str:
        """Return the expression of a folder, seen from the test: both may move together."""
        way = Path(os.path.relpath(folder, self.path.resolve().parent)).as_posix()
        here = "Path(__file__).parent"
        return here if way == "." else f"({here} / {quoted(way)}).resolve()"

    def _payload_fixture(self) -> str:
        text = self._payload()
        if text is None:
            text = f"read_payload(Path(__file__).parent / {quoted(self._json.name)})"
        return f"@pytest.fixture\ndef payload() -> dict[str, Any]:\n    return {text}"

    def _payload(self) -> str | None:
        """Return the payload's literal; None if it is too long to be read, or too deep."""
        try:
            text = literal(self.letter.payload, 4, len("return "))
            compile(text, "payload", "eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return text if len(text) <= _LONGEST_LITERAL else None

    def _test(self) -> str:
        letter = self.letter
        given = [
            "topology",
            quoted(letter.spout),
            "payload",
            f"until={quoted(self.until)}",
        ]
        if letter.stream != DEFAULT_STREAM:
            given.append(f"stream={quoted(letter.stream)}")
        if letter.direct is not None:
            given.append(f"direct={literal(letter.direct)}")
        if self.state:
            given.append(f"state={literal(dict(self.state), 8, len('state='))}")
        if settings := self._settings():
            given.append(f"config=Config.parse({literal(settings)})")
        name = re.sub(r"\W", "_", letter.id)[:12]
        call = f"    run_message({', '.join(given)})"
        if len(call) > 88 or "\n" in call:
            call = "    run_message(\n" + "".join(f"        {arg},\n" for arg in given) + "    )"
        head = f"def test_dead_letter_{name}(topology: Topology, payload: dict[str, Any]) -> None:"
        if len(head) > 88:
            head = (
                f"def test_dead_letter_{name}(\n    topology: Topology, payload: dict[str, Any]\n"
                f") -> None:"
            )
        return f"{head}\n{call}"

    def _settings(self) -> dict[str, str]:
        """Return the settings without secrets, which do not belong into a file."""
        pairs = [pair for pair in self.settings if not (looks_secret(pair) or holds_secret(pair))]
        if len(pairs) < len(self.settings):
            say("settings that look secret are not in the test: add them by hand", err=True)
        return dict(pair.partition("=")[::2] for pair in pairs)
