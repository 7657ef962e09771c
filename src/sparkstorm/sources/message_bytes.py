"""The size of messages, about: so that limits in bytes can be kept by counting."""

from itertools import chain, islice
from typing import Any, final

import numpy as np

__all__ = ["MeanBytes", "bytes_of"]

_SCALAR = 8
"""The size of numbers and times; and of objects, since only their encoding shows their size."""

_TEXTS = (str, bytes, bytearray)
_CONTAINERS = (dict, list, tuple, set, frozenset)
_LOOK_AT = 8
_DEPTH = 3
_MEMORY = 16


@final
class MeanBytes:
    """The mean size of messages, soon that of the last messages.

    >>> mean = MeanBytes()
    >>> mean.note(100)
    >>> mean.note(300)
    >>> mean.value
    200.0
    """

    def __init__(self) -> None:
        self.value = 0.0
        """The mean, at least 1; 0 before the first message."""
        self.settled = False
        """Whether the mean has seen as many messages as its memory holds."""
        self._weight = 0

    def note(self, nbytes: float, messages: int = 1) -> None:
        """Add the mean size of so many messages."""
        self._weight = min(self._weight + messages, _MEMORY)
        share = min(1.0, messages / self._weight)
        self.value = max(self.value + (nbytes - self.value) * share, 1.0)
        self.settled = self._weight == _MEMORY


def bytes_of(value: Any, depth: int = _DEPTH) -> int:
    """Return the bytes of a value, about; of many items the first few stand for all.

    >>> bytes_of("storm"), bytes_of([1.0] * 1000), bytes_of({"text": "x" * 96})
    (5, 8000, 100)
    """
    kind = type(value)
    if kind in _TEXTS:
        return len(value)
    if kind is np.ndarray:
        return int(value.nbytes)
    if kind not in _CONTAINERS or not depth or not value:
        return _SCALAR
    items = chain.from_iterable(value.items()) if kind is dict else value
    sizes = [bytes_of(item, depth - 1) for item in islice(items, _LOOK_AT)]
    count = len(value) * (2 if kind is dict else 1)
    return sum(sizes) * count // len(sizes)
