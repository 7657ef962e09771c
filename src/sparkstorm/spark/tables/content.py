"""The content of the tables: reads a checkpoint's files in the driver, without locks or pickles."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, final

from pyspark.sql import SparkSession

from sparkstorm.checkpoint.files import CheckpointFiles, LocalFiles
from sparkstorm.checkpoint.manifest import Manifest
from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.dead_letters.store import LetterStore
from sparkstorm.dead_letters.values import to_json
from sparkstorm.errors import CheckpointError, ConfigError
from sparkstorm.spark.driver.storage.checkpoint import HadoopFiles
from sparkstorm.spark.driver.storage.kept_state import StateReader
from sparkstorm.spark.tables.last_plan import LastPlan
from sparkstorm.spark.tables.messages import Group, groups_of
from sparkstorm.spark.tables.partitions import partition_rows
from sparkstorm.spark.tables.pieces import Piece
from sparkstorm.spark.tables.places import place_of
from sparkstorm.state.view import items_of_task
from sparkstorm.texts.showing import as_json

__all__ = ["Content"]


@final
class Content:
    """The tables of one checkpoint.

    Args:
        session: any session; reaches the file system, and reads the state.
        checkpoint: the checkpoint folder.

    Raises:
        CheckpointError: there is no checkpoint of sparkstorm.
    """

    def __init__(self, session: SparkSession, checkpoint: str) -> None:
        self._session = session
        self._checkpoint = checkpoint
        self._files: CheckpointFiles = LocalFiles.of_checkpoint(checkpoint) or HadoopFiles(
            session, f"{checkpoint.rstrip('/')}/sparkstorm", location=checkpoint
        )
        manifest = Manifest.read(self._files)
        if manifest is None:
            raise CheckpointError(
                f"{checkpoint} is no checkpoint of sparkstorm, or no topology has run on it yet: "
                f"give the DIR that was given to sparkstorm run --checkpoint"
            )
        self._manifest = manifest

    def pieces(self, table: str) -> Iterator[Piece]:
        """Yield the rows of a table.

        Raises:
            ConfigError: there is no such table.
            CheckpointError: a file is damaged.
        """
        tables: Mapping[str, Callable[[], Iterator[Piece]]] = {
            "messages": lambda: (group.message() for group in self._groups()),
            "attempts": self._attempts,
            "dead_letters": lambda: map(_letter_row, self._letters()),
            "partitions": self._partitions,
            "state": self._state,
        }
        if table not in tables:
            raise ConfigError(f"there is no table {table!r}: there are {', '.join(tables)}")
        return tables[table]()

    def _groups(self) -> Iterator[Group]:
        last = LastPlan.read(self._files)
        return iter(()) if last is None else groups_of(last)

    def _letters(self) -> Iterator[DeadLetter]:
        return LetterStore(self._files).letters()

    def _attempts(self) -> Iterator[Piece]:
        for group in self._groups():
            yield from group.attempts()
        yield from map(_attempt_row, self._letters())

    def _partitions(self) -> Iterator[Piece]:
        last = LastPlan.read(self._files)
        if last is not None:
            yield from partition_rows(last, self._letters())

    def _state(self) -> Iterator[Piece]:
        reader = StateReader(self._session, self._checkpoint, self._manifest.stages)
        for component, kept in sorted(self._manifest.state.items()):
            for index in range(kept.tasks):
                has_entries = kept.kind.endswith("rocksdb")
                store = reader.task(component, index, has_entries=has_entries)
                for item in items_of_task(store):
                    key, value = as_json(to_json(item.key)), as_json(to_json(item.value))
                    yield Piece((component, kept.first + index, item.space, key, value))


def _attempt_row(letter: DeadLetter) -> Piece:
    why = letter.failure
    values = (
        letter.spout,
        letter.task,
        letter.attempts,
        "dead letter",
        why.reason.value,
        why.component,
        why.task,
        why.message,
        why.traceback,
        letter.id,
    )
    return Piece((*values, _position(letter), *_place(letter)))


def _letter_row(letter: DeadLetter) -> Piece:
    data, why = letter.to_json(), letter.failure
    payload = (
        None if letter.values is None else dict(zip(letter.fields, data["values"], strict=True))
    )
    values = (
        letter.id,
        letter.topology,
        letter.run,
        letter.spout,
        letter.task,
        letter.stream,
        None if payload is None else as_json(payload),
        as_json(data["msg_id"]),
        None if data["source"] is None else as_json(data["source"]),
        why.reason.value,
        why.component,
        why.task,
        why.message,
        why.traceback,
        letter.attempts,
        letter.replays,
        letter.first_time,
        letter.last_time,
        letter.note,
    )
    return Piece((*values, *_place(letter)))


def _place(letter: DeadLetter) -> tuple[str | None, int | None]:
    place, position = place_of(letter.source or {}), _position(letter)
    if place.base is None or position is None:
        return place.partition, None
    return place.partition, place.base + position


def _position(letter: DeadLetter) -> int | None:
    position: Any = (letter.source or {}).get("position")
    return position if isinstance(position, int) else None
