"""Lines of components, logged again by the driver."""

import logging
from collections.abc import Iterator

import pytest

from sparkstorm.tasks.report import LINES, LogLine, log_line


def line(level: str, text: str, trace: str = "") -> LogLine:
    return LogLine("split", 3, level, text, trace)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[logging.Logger]:
    """The logger of ``split`` in a program that sets up no logging, cut off from pytest's."""
    monkeypatch.setattr(logging.getLogger(LINES), "propagate", False)
    logger = logging.getLogger(f"{LINES}.split")
    yield logger
    logger.setLevel(logging.NOTSET)


@pytest.mark.usefixtures("bare")
def test_a_program_without_logging_still_shows_what_bolts_print(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Python itself would show warnings alone."""
    log_line(line("print", "hello"))
    log_line(line("error", "it broke", "Traceback …"))
    log_line(line("debug", "by the way"))
    assert capsys.readouterr().err == "split: hello\nsplit: it broke\n    Traceback …\n"


@pytest.mark.usefixtures("bare")
def test_a_shown_line_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a message holds cannot command the terminal."""
    log_line(line("print", "a\rb\x1b[2J"))
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert shown.removesuffix("\n").isprintable()


def test_a_level_that_the_program_set_holds(
    bare: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    """The level of one component, say."""
    bare.setLevel(logging.WARNING)
    log_line(line("print", "hello"))
    log_line(line("warning", "look"))
    assert capsys.readouterr().err == "split: look\n"


def test_a_program_with_logging_gets_records_alone(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """A handler of the program's decides."""
    with caplog.at_level(logging.INFO):
        log_line(line("print", "hello"))
    assert [record.getMessage() for record in caplog.records] == ["hello"]
    assert capsys.readouterr().err == ""
