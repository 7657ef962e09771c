"""Spark's messages: in a file that stays only for errors they may explain."""

import tempfile
from pathlib import Path

import pytest

from sparkstorm.checkpoint.spark_messages import SparkMessages
from sparkstorm.errors import BatchError, ConfigError


def write(messages: SparkMessages) -> None:
    with messages.opened() as output:
        assert output is not None
        output.write(b"Spark's own words")


def fail(error: BaseException, *, shown: bool = False) -> None:
    """Let Spark write, and then raise an error under it."""
    with SparkMessages(shown=shown) as messages, messages.opened() as output:
        if output is not None:
            output.write(b"Spark's own words")
        raise error


def kept_at(error: BaseException) -> Path:
    """The file that a note of an error names."""
    [note] = error.__notes__
    return Path(note.removeprefix("Spark's own messages are in "))


def test_nothing_stays_after_a_good_end(temporary: Path) -> None:
    """Nor while somebody asks twice for the file."""
    with SparkMessages() as messages:
        write(messages)
        write(messages)
        assert len([*temporary.iterdir()]) == 1
    assert not [*temporary.iterdir()]


@pytest.mark.parametrize("error", [ConfigError("a typo"), KeyboardInterrupt()])
def test_an_error_of_the_users_own_names_no_file(temporary: Path, error: BaseException) -> None:
    """Spark knows nothing about it."""
    with pytest.raises(type(error)):
        fail(error)
    assert not [*temporary.iterdir()]
    assert not hasattr(error, "__notes__")


@pytest.mark.parametrize("error", [BatchError("a batch failed"), OSError("no Java")])
def test_an_error_that_spark_may_explain_names_the_file(
    temporary: Path, error: BaseException
) -> None:
    """What passes through the context is named once, and the file outlives it."""
    with pytest.raises(type(error)):
        fail(error)
    kept = kept_at(error)
    assert kept.read_text() == "Spark's own words"
    assert [*temporary.iterdir()] == [kept]


def test_an_error_of_a_run_keeps_the_file_while_spark_still_writes(temporary: Path) -> None:
    """The run's fault comes before its end; what Spark says at the end belongs to it."""
    error = BatchError("a batch failed")
    with SparkMessages() as messages, messages.opened() as output:
        assert output is not None
        messages.explain(error)
        output.write(b"Spark's last words")
    assert kept_at(error).read_text() == "Spark's last words"


def test_shown_messages_need_no_file(temporary: Path) -> None:
    """Spark writes to the terminal, so an error has nothing to name."""
    error = BatchError("a batch failed")
    with pytest.raises(BatchError):
        fail(error, shown=True)
    assert not [*temporary.iterdir()]
    assert not hasattr(error, "__notes__")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files, empty."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path
