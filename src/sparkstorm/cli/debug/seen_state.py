"""The state that a message met, as values that a test can hold."""

from typing import Any, final

from sparkstorm.cli.terminal import say
from sparkstorm.dead_letters.values import from_json, is_whole, to_json
from sparkstorm.local.one_message import OpenStore
from sparkstorm.state.stores import MemoryStore
from sparkstorm.state.view import Item, items_of_task

__all__ = ["SeenState"]

_MOST_KEYS = 20
"""The most keys of a component in a test; a larger state would hide the test in its data."""


@final
class SeenState:
    """Hands stores on, and remembers them.

    Args:
        open_store: returns the committed state of tasks; None if state begins empty.
    """

    def __init__(self, open_store: OpenStore | None) -> None:
        self._open_store = open_store
        self._seen: dict[str, MemoryStore] = {}

    def store(self, task: str) -> MemoryStore:
        """Return the state of a task, ``component/index``."""
        store = MemoryStore() if self._open_store is None else self._open_store(task)
        self._seen[task] = store.copy()
        return store

    def content(self) -> dict[str, dict[Any, Any]]:
        """Return keys and values by component, where these are few and plain; say where not.

        Nothing is unpickled but plain values: whoever gets the test need not trust the checkpoint.
        """
        found: dict[str, dict[Any, Any]] = {}
        for task, store in self._seen.items():
            component = task.rpartition("/")[0]
            items = list(items_of_task(store))
            found.setdefault(component, {}).update(
                (item.key, item.value) for item in items if _is_plain(item)
            )
            if len(found[component]) > _MOST_KEYS or not all(map(_is_plain, items)):
                say(
                    f"the state of {component!r} is not whole in the test: it has more than "
                    f"{_MOST_KEYS} keys, named states, held tuples, or values without a literal",
                    err=True,
                )
                found[component] = dict(list(found[component].items())[:_MOST_KEYS])
        return {component: content for component, content in found.items() if content}


def _is_plain(item: Item) -> bool:
    return item.space == "" and is_whole(from_json(to_json([item.key, item.value])))
