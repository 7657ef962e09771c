"""The files of dead letters: JSON lines, one file per write.

The first line is the file's seal (:mod:`sparkstorm.checkpoint.seal`). People may mend a file: a
file without a seal is read as it is.

A file never grows after its write, it only loses letters. So a running topology and the command
line may both remove letters without losing any. If both do so at the same moment, a removed letter
may come back: the letter is replayed twice, never lost.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias, final

from sparkstorm.checkpoint.files import CheckpointFiles
from sparkstorm.checkpoint.seal import BrokenSealError, is_seal, seal, unseal
from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.errors import CheckpointError

__all__ = ["LetterStore", "Places"]

Places: TypeAlias = tuple[str, ...]
"""The files that hold a letter, oldest first; after a crash there may be several."""

_SUFFIX = ".jsonl"


class _File(NamedTuple):
    """A file's lines, the seal line before them, and how the seal does not fit."""

    lines: list[bytes]
    head: bytes = b""
    fault: str = ""

    @classmethod
    def of(cls, data: bytes) -> "_File":
        first, end, rest = data.partition(b"\n")
        if data and not is_seal(first):
            return cls(data.splitlines())
        try:
            return cls(unseal(data).splitlines(), first + end)
        except BrokenSealError as error:
            return cls(rest.splitlines(), first + end, str(error))

    def without(self, ids: Collection[str]) -> "_File":
        """Return the file without some letters; a damaged line stays."""
        return self._replace(lines=[line for line in self.lines if _id_in(line) not in ids])

    def to_bytes(self) -> bytes:
        """Return the content; a seal that did not fit stays, so the damage still shows."""
        rest = b"".join(line + b"\n" for line in self.lines)
        # A new seal would declare the rest whole.
        return self.head + rest if self.fault or not self.head else seal(rest)


@final
class LetterStore:
    """The letters in one folder.

    Args:
        files: the place of the folder.
        folder: its name there.

    >>> from sparkstorm.checkpoint.files import MemoryFiles
    >>> list(LetterStore(MemoryFiles(), "dead-letters").letters())
    []
    """

    def __init__(self, files: CheckpointFiles, folder: str = "dead-letters") -> None:
        self.files = files
        self.folder = folder

    def write(self, letters: Sequence[DeadLetter]) -> str:
        """Write letters into a new file, durable on return; return the file's name."""
        ids = hashlib.blake2b("".join(letter.id for letter in letters).encode(), digest_size=6)
        newest = max(letter.last_time for letter in letters)
        # The time sorts files by age; the digest parts files of the same moment.
        name = f"{int(newest * 1000):014d}-{ids.hexdigest()}{_SUFFIX}"
        lines = (json.dumps(letter.to_json()).encode() + b"\n" for letter in letters)
        self.files.write(f"{self.folder}/{name}", seal(b"".join(lines)))
        return name

    def names(self) -> list[str]:
        """Return the files, oldest first."""
        return [name for name in self.files.names(self.folder) if name.endswith(_SUFFIX)]

    def read(self, name: str) -> list[DeadLetter]:
        """Return the letters of a file; none if the file is gone.

        Raises:
            CheckpointError: a line is not a letter, or letters are missing or changed.
        """
        letters, file = [], self._file(name)
        for number, line in enumerate(file.lines, start=1 + bool(file.head)):
            try:
                letters.append(DeadLetter.from_json(json.loads(line)))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise CheckpointError(
                    f"line {number} of {self.folder}/{name} is not a dead letter: {error!r}. "
                    f"Mend the line or move the file away"
                ) from error
        if file.fault:
            raise CheckpointError(
                f"{self.folder}/{name} is damaged ({file.fault}), so letters are missing or "
                f"changed. Restore it from a backup; or delete its first line, to take the rest "
                f"for whole; or move the file away"
            )
        return letters

    def letters(self, ids: Collection[str] | None = None) -> Iterator[DeadLetter]:
        """Yield all letters, or those with some ids, each once; the newest of each id.

        The call checks every file at once; then each file is read in turn, oldest first.

        Raises:
            CheckpointError: a line is not a letter.
        """
        return (letter for letter, _ in self.placed(ids))

    def placed(self, ids: Collection[str] | None = None) -> Iterator[tuple[DeadLetter, Places]]:
        """Yield the letters of :meth:`letters`, each with the files that hold it.

        Raises:
            CheckpointError: a line is not a letter.
        """
        places = self.places()
        # Only ids and files are kept in memory; the letters of all files may not fit.
        return self._newest({i: p for i, p in places.items() if ids is None or i in ids})

    def _newest(self, places: Mapping[str, Places]) -> Iterator[tuple[DeadLetter, Places]]:
        for name in sorted({names[-1] for names in places.values()}):
            for letter in {letter.id: letter for letter in self.read(name)}.values():
                names = places.get(letter.id)
                if names is not None and names[-1] == name:
                    yield letter, names

    def places(self) -> dict[str, Places]:
        """Return the files of each letter, by id."""
        found: dict[str, Places] = {}
        for name in self.names():
            for id_ in {letter.id for letter in self.read(name)}:
                found[id_] = (*found.get(id_, ()), name)
        return found

    def remove(self, ids: Collection[str], names: Iterable[str] | None = None) -> None:
        """Remove letters, from some files or from all; a damaged line stays."""
        wanted = set(ids)
        for name in self.names() if names is None else names:
            file = self._file(name)
            kept = file.without(wanted)
            if file.lines and not kept.lines and not file.fault:
                self.files.delete(f"{self.folder}/{name}")
            elif len(kept.lines) < len(file.lines):
                self.files.write(f"{self.folder}/{name}", kept.to_bytes())

    def replace(self, letters: Sequence[DeadLetter], names: Iterable[str] | None = None) -> None:
        """Write letters and remove the former ones of the same ids, from some files or all.

        Every letter exists all the time.
        """
        before = self.names() if names is None else names
        name = self.write(letters)
        self.remove([letter.id for letter in letters], [x for x in before if x != name])

    def _file(self, name: str) -> _File:
        data = self.files.read(f"{self.folder}/{name}")
        return _File([]) if data is None else _File.of(data)


def _id_in(line: bytes) -> str | None:
    """Return the id of the letter in a line; None for a line people have to look at."""
    try:
        return str(json.loads(line)["id"])
    except (ValueError, TypeError, KeyError):
        return None
