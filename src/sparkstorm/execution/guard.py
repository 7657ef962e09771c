"""Catches bolts that keep state in attributes although they declare none."""

import hashlib
from typing import final

import cloudpickle

from sparkstorm.components.bolt import AnyBolt
from sparkstorm.errors import AttributeStateError, TrackingError

__all__ = ["AttributeGuard"]

_BATCHES = 3
"""How many batches of a task are checked: enough to catch the mistake, cheap in the long run."""

_ENGINE_OWNED = frozenset({"collector", "context"})


@final
class AttributeGuard:
    """Remembers a bolt's attributes after ``prepare`` and compares them after a batch.

    What cannot be pickled (a connection, a model) is left alone.
    """

    def __init__(self, component: str, bolt: AnyBolt) -> None:
        self._component = component
        self._bolt = bolt
        self._left = _BATCHES
        self._before = self._fingerprints()

    def check(self) -> None:
        """Compare, in the first batches.

        Raises:
            AttributeStateError: naming the attribute and the ways out.
        """
        if not self._left:
            return
        self._left -= 1
        after = self._fingerprints()
        changed = sorted(
            name for name in {*self._before, *after} if self._before.get(name) != after.get(name)
        )
        if changed:
            raise AttributeStateError(
                f"bolt {self._component!r} ({type(self._bolt).__name__}) changed its attribute "
                f"{changed[0]!r} while executing, but attributes are not kept: Spark may run the "
                f"task in another process at any time. Keep it as state (subclass StatefulBolt), "
                f"or, if it may be lost, name it: transient = ({changed[0]!r},)"
            )

    def _fingerprints(self) -> dict[str, bytes]:
        prints = {}
        for name, value in vars(self._bolt).items():
            if name in _ENGINE_OWNED or name in self._bolt.transient:
                continue
            try:
                pickled = cloudpickle.dumps(value)
            except TrackingError as error:
                raise AttributeStateError(
                    f"bolt {self._component!r} ({type(self._bolt).__name__}) keeps a tuple in its "
                    f"attribute {name!r} after the batch: {error}"
                ) from error
            except Exception:  # noqa: BLE001, S112 - any __reduce__ may raise anything
                continue
            prints[name] = hashlib.blake2b(pickled).digest()
        return prints
