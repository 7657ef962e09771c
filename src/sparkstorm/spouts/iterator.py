"""The IteratorSpout: any Python iterable as a spout."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, final

from sparkstorm.components.collector import SpoutCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.components.functions import check_function
from sparkstorm.config import Config
from sparkstorm.errors import ConfigError
from sparkstorm.spouts.replaying import ReplayingSpout
from sparkstorm.streams import Outputs

__all__ = ["IteratorSpout"]


@final
class IteratorSpout(ReplayingSpout):
    """Emits the items of an iterable, one message each; the message id is the item's number.

    Args:
        items: a picklable iterable (a list, a range), or a function that returns an iterable. Of n
            tasks, task i takes every n-th item.
        outputs: the declared stream.

    A tuple or list is a row of values; any other item is a row of one value. After a restart of the
    driver the spout starts from the beginning, since an iterable has no position to return to.

    Raises:
        ConfigError: the items are an iterator, or a function that is async or takes arguments.
    """

    def __init__(
        self, items: Iterable[Any] | Callable[[], Iterable[Any]], outputs: Outputs = ("value",)
    ) -> None:
        check_function("items", items, may_yield=True)
        if isinstance(items, Iterator):
            raise ConfigError(
                f"items is a {type(items).__name__}, which can be gone through once, and sent "
                f"nowhere: give the function that makes one, or a list"
            )
        self.outputs = outputs
        self._items = items

    def open(self, config: Config, context: TaskContext, collector: SpoutCollector) -> None:
        """Start the iteration."""
        super().open(config, context, collector)
        items = self._items() if callable(self._items) else self._items
        self._iterator: Iterator[tuple[int, Any]] = enumerate(items)
        self._share = (context.task_index, len(context.component_tasks(context.component)))
        self._ended = False

    def next_message(self) -> tuple[Hashable, Sequence[Any]] | None:
        """Return the next item of this task."""
        index, tasks = self._share
        for number, item in self._iterator:
            if number % tasks == index:
                return number, item if isinstance(item, tuple | list) else (item,)
        self._ended = True
        return None

    def exhausted(self) -> bool:
        """Whether the iterable has ended, and no message waits for a retry."""
        return self._ended and not self.kept
