"""What stands in a state for a value that is not kept as it is."""

from typing import Any, Final, final

__all__ = ["ATOMS", "DELETED", "MISSING", "Kept"]

ATOMS: Final = frozenset({str, int, float, bool, bytes, type(None)})
"""Types whose values cannot change in place: kept as they are."""

MISSING: Final[Any] = object()
"""Stands for an entry that is not there."""


@final
class Kept:
    """A value that is not kept as it is: pickled, or (``DELETED``) gone."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __reduce__(self) -> Any:
        return (Kept, (self.data,)) if self.data else "DELETED"


DELETED: Final = Kept(b"")
"""The fresh entry of a key that the batch has removed."""
