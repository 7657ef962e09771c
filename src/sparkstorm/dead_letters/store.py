"""The files of dead letters: JSON lines, one file for all letters that were written together.

A file never grows after it was written, it only loses letters, so that a running topology and the
command line may both remove letters without losing one. If they do so at the same moment, a letter
that one of them removed may come back: replayed once more, never lost.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import final

from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.delivery.files import CheckpointFiles
from sparkstorm.errors import CheckpointError

__all__ = ["LetterStore"]

_SUFFIX = ".jsonl"


@final
class LetterStore:
    """The letters in one folder.

    Args:
        files: where the folder is.
        folder: its name there.

    >>> from sparkstorm.delivery.files import MemoryFiles
    >>> list(LetterStore(MemoryFiles(), "dead-letters").letters())
    []
    """

    def __init__(self, files: CheckpointFiles, folder: str = "dead-letters") -> None:
        self.files = files
        self.folder = folder

    def write(self, letters: Sequence[DeadLetter]) -> str:
        """Write letters into a file of their own, durable on return; return the file's name."""
        ids = hashlib.blake2b("".join(letter.id for letter in letters).encode(), digest_size=6)
        newest = max(letter.last_time for letter in letters)
        name = f"{int(newest * 1000):014d}-{ids.hexdigest()}{_SUFFIX}"
        self._write(name, letters)
        return name

    def names(self) -> list[str]:
        """The files, oldest first."""
        return [name for name in self.files.names(self.folder) if name.endswith(_SUFFIX)]

    def read(self, name: str) -> list[DeadLetter]:
        """Return the letters of a file; none if it is gone.

        Raises:
            CheckpointError: a line is not a letter.
        """
        data = self.files.read(f"{self.folder}/{name}") or b""
        letters = []
        for number, line in enumerate(data.splitlines(), start=1):
            try:
                letters.append(DeadLetter.from_json(json.loads(line)))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise CheckpointError(
                    f"line {number} of {self.folder}/{name} is not a dead letter: {error!r}. "
                    f"Mend the line or move the file away"
                ) from error
        return letters

    def letters(self, ids: Collection[str] | None = None) -> Iterator[DeadLetter]:
        """Yield every letter once, or those with these ids; of letters with one id, the newest.

        Every file is checked at once; then one after the other is read, oldest first.

        Raises:
            CheckpointError: a line is not a letter.
        """
        newest = {id_: names[-1] for id_, names in self.places().items()}
        return self._newest({i: n for i, n in newest.items() if ids is None or i in ids})

    def _newest(self, newest: Mapping[str, str]) -> Iterator[DeadLetter]:
        for name in sorted(set(newest.values())):
            for letter in {letter.id: letter for letter in self.read(name)}.values():
                if newest.get(letter.id) == name:
                    yield letter

    def places(self) -> dict[str, list[str]]:
        """For the id of each letter the files that hold it, oldest first."""
        found: dict[str, list[str]] = {}
        for name in self.names():
            for letter in self.read(name):
                found.setdefault(letter.id, []).append(name)
        return found

    def remove(self, ids: Collection[str], names: Sequence[str] | None = None) -> None:
        """Remove letters, from these files or wherever they are."""
        wanted = set(ids)
        for name in self.names() if names is None else names:
            letters = self.read(name)
            kept = [letter for letter in letters if letter.id not in wanted]
            if letters and not kept:
                self.files.delete(f"{self.folder}/{name}")
            elif len(kept) < len(letters):
                self._write(name, kept)

    def replace(self, letter: DeadLetter) -> None:
        """Write a letter and remove what was there under its id; it is there all the time."""
        before = self.names()
        name = self.write([letter])
        self.remove([letter.id], [other for other in before if other != name])

    def _write(self, name: str, letters: Sequence[DeadLetter]) -> None:
        lines = [json.dumps(letter.to_json()) for letter in letters]
        self.files.write(f"{self.folder}/{name}", "".join(f"{x}\n" for x in lines).encode())
