"""Lines of components, logged again by the driver."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sparkstorm.tasks.report import LINES, LogLine, Report, capture_prints, log_line


def line(level: str, text: str, trace: str = "") -> LogLine:
    return LogLine("split", 3, level, text, trace)


@contextmanager
def no_logging_set_up() -> Iterator[logging.Logger]:
    """Cut the logger of ``split`` off from pytest's handlers."""
    lines, logger = logging.getLogger(LINES), logging.getLogger(f"{LINES}.split")
    lines.propagate = False
    try:
        yield logger
    finally:
        lines.propagate = True
        logger.setLevel(logging.NOTSET)


def test_a_program_without_logging_still_shows_what_bolts_print(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Python itself would show warnings alone."""
    with no_logging_set_up():
        log_line(line("print", "hello"))
        log_line(line("error", "it broke", "Traceback …"))
        log_line(line("debug", "by the way"))
    assert capsys.readouterr().err == "split: hello\nsplit: it broke\n    Traceback …\n"


def test_a_shown_line_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a message holds cannot command the terminal."""
    with no_logging_set_up():
        log_line(line("print", "a\rb\x1b[2J"))
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert shown.removesuffix("\n").isprintable()


def test_a_level_that_the_program_set_holds(capsys: pytest.CaptureFixture[str]) -> None:
    """The level of one component, say."""
    with no_logging_set_up() as logger:
        logger.setLevel(logging.WARNING)
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


def test_the_talk_with_java_is_nobodys_line() -> None:
    """Where a Spark session lives beside a local runner, at any moment."""
    report = Report("split", 3, least=logging.DEBUG)
    with capture_prints(report):
        logging.getLogger("py4j.clientserver").debug("Command to send: m")
        logging.getLogger("py4json").debug("a bolt's own")
    assert [one.text for one in report.lines] == ["a bolt's own"]
