"""The work of ``sparkstorm dead-letters``; local folders need no Spark."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import final

from sparkstorm.checkpoint.files import LocalFiles
from sparkstorm.checkpoint.spark_messages import SparkMessages
from sparkstorm.clock import SystemClock
from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.dead_letters.places import default_folder
from sparkstorm.dead_letters.requests import RequestBox
from sparkstorm.dead_letters.selection import Selection, by_id, parse_age
from sparkstorm.dead_letters.store import LetterStore
from sparkstorm.errors import CheckpointError, ConfigError
from sparkstorm.verdicts import Reason

__all__ = ["Found", "LetterOptions", "discard", "find", "open_stores", "replay"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LetterOptions:
    """The options that choose letters, from the command line."""

    ids: Sequence[str] = ()
    topology: str | None = None
    component: str | None = None
    reason: str | None = None
    older_than: str | None = None
    newer_than: str | None = None
    checkpoint: str | None = None
    folder: Path | None = None

    def selection(self) -> Selection:
        """Return the filters.

        Raises:
            ConfigError: a reason or an age is invalid.
        """
        if self.reason is not None and self.reason not in set(Reason):
            raise ConfigError(f"{self.reason!r} is no reason: there are {', '.join(Reason)}")
        return Selection(
            topology=self.topology,
            component=self.component,
            reason=None if self.reason is None else Reason(self.reason),
            older_than=None if self.older_than is None else parse_age(self.older_than),
            newer_than=None if self.newer_than is None else parse_age(self.newer_than),
        )


@final
@dataclass(frozen=True, slots=True)
class Found:
    """The chosen letters of one store."""

    store: LetterStore
    letters: list[DeadLetter]


@contextmanager
def open_stores(options: LetterOptions) -> Iterator[list[LetterStore]]:
    """Open the folders of letters: a checkpoint's, or each topology's in the user's folder.

    Raises:
        CheckpointError: there is no such folder.
    """
    place = options.checkpoint
    if place is not None and options.folder is not None:
        raise ConfigError("--checkpoint and --folder are two places: give one of them")
    if place is not None and "://" in place and not place.startswith("file:"):
        with _on_hadoop(place) as store:
            yield [store]
    elif place is not None:
        path = Path(place.removeprefix("file://").removeprefix("file:"))
        if not (path / "sparkstorm").is_dir():
            raise CheckpointError(
                f"{place} is no checkpoint folder of sparkstorm: give the DIR that was given to "
                f"sparkstorm run --checkpoint"
            )
        yield [LetterStore(LocalFiles(path / "sparkstorm"))]
    else:
        yield _of_topologies(options.folder, options.topology)


def find(stores: Iterable[LetterStore], options: LetterOptions) -> list[Found]:
    """Return the chosen letters by store: by id, or by the filters.

    Raises:
        ConfigError: an id fits no letter or several, or a filter is invalid.
    """
    selection, now = options.selection(), SystemClock().wall()
    found = []
    for store in stores:
        letters = [letter for letter in store.letters() if selection.takes(letter, now)]
        found.append(Found(store, sorted(letters, key=lambda letter: letter.last_time)))
    if not options.ids:
        return [one for one in found if one.letters]
    chosen = {one.id for one in by_id((x for f in found for x in f.letters), options.ids)}
    picked = [Found(f.store, [x for x in f.letters if x.id in chosen]) for f in found]
    return [one for one in picked if one.letters]


def replay(found: Sequence[Found], rate: float | None) -> list[DeadLetter]:
    """Ask for letters to be emitted again; return the letters that cannot be."""
    left_out = []
    for one in found:
        able = [letter for letter in one.letters if letter.replayable]
        left_out += [letter for letter in one.letters if not letter.replayable]
        if able:
            RequestBox(one.store).ask(able, wall=SystemClock().wall(), rate=rate)
    return left_out


def discard(found: Sequence[Found]) -> int:
    """Remove letters for good; return their number."""
    for one in found:
        one.store.remove([letter.id for letter in one.letters])
    return sum(len(one.letters) for one in found)


def _of_topologies(folder: Path | None, topology: str | None) -> list[LetterStore]:
    base = folder or default_folder()
    if folder is not None and not base.is_dir():
        raise CheckpointError(
            f"there is no folder {base}: give the one that dead_letter_folder set"
        )
    names = sorted(path.name for path in base.iterdir() if path.is_dir()) if base.is_dir() else []
    return [LetterStore(LocalFiles(base), name) for name in names if topology in (None, name)]


@contextmanager
def _on_hadoop(place: str) -> Iterator[LetterStore]:
    """Open a store on another file system, by Hadoop's own code in a JVM."""
    from sparkstorm.spark.driver.session import make_session
    from sparkstorm.spark.driver.storage.checkpoint import open_files

    with ExitStack() as stack:
        log = stack.enter_context(SparkMessages())
        with log.opened() as output:
            session = make_session("sparkstorm-dead-letters", "local[1]", output=output)
        stack.callback(session.stop)
        yield LetterStore(open_files(place, session))
