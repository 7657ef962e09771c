"""The attributes of bolts: kept in the state if the bolt is stateful, otherwise guarded."""

import hashlib
from typing import final

import cloudpickle

from sparkstorm.components.bolt import AnyBolt
from sparkstorm.errors import AttributeStateError, TrackingError
from sparkstorm.state.spaces.key_values import KeyValues
from sparkstorm.texts.user_errors import is_of_value

__all__ = ["AttributeGuard", "AttributeKeeper", "pickled_attributes"]

_BATCHES = 3
"""The number of checked batches per task: enough to catch the mistake, cheap in the long run."""

_ENGINE_OWNED = frozenset({"collector", "context"})

_ATTRIBUTES = "attributes"
"""The key of an :class:`AttributeKeeper`'s only value."""


@final
class AttributeGuard:
    """Remembers a bolt's attributes after ``prepare``, and compares them after a batch.

    Attributes that cannot be pickled (a connection, a model) are ignored.
    """

    def __init__(self, component: str, bolt: AnyBolt) -> None:
        self._component = component
        self._bolt = bolt
        self._left = _BATCHES
        self._before = self._fingerprints()

    def check(self) -> None:
        """Compare the attributes, in the first batches only.

        Raises:
            AttributeStateError: an attribute changed; the message names the attribute and the
                mends.
        """
        if not self._left:
            return
        # A digest of each attribute per batch would be dear for large models.
        self._left -= 1
        after = self._fingerprints()
        changed = sorted(
            name for name in {*self._before, *after} if self._before.get(name) != after.get(name)
        )
        if changed:
            raise AttributeStateError(
                f"bolt {self._component!r} ({type(self._bolt).__name__}) changed its attribute "
                f"{changed[0]!r} while executing, but attributes are not kept: Spark may run the "
                f"task in another process at any time. Keep it as state (subclass StatefulBolt, "
                f"or set stateful = True if it is small), or, if it may be lost, name it: "
                f"transient = ({changed[0]!r},)"
            )

    def _fingerprints(self) -> dict[str, bytes]:
        pickled = pickled_attributes(self._component, self._bolt)
        return {name: hashlib.blake2b(data).digest() for name, data in pickled.items()}


@final
class AttributeKeeper:
    """Keeps the attributes of a bolt with ``stateful = True`` in the state of its task.

    Only attributes changed since ``prepare`` are stored: the next run may build the bolt with other
    values. Attributes that could not be pickled after ``prepare`` (a connection) are ignored.

    Args:
        component: the bolt's id.
        bolt: the bolt, prepared.
        space: the space that stores the attributes, in a single pickle, so that shared objects stay
            shared.
    """

    def __init__(self, component: str, bolt: AnyBolt, space: KeyValues) -> None:
        self._component = component
        self._bolt = bolt
        self._space = space
        self._prepared = pickled_attributes(component, bolt)
        self._left_alone = vars(bolt).keys() - self._prepared.keys()
        self._kept: bytes | None = None
        self._as_kept = True

    def bring(self) -> None:
        """Set the bolt's attributes to the committed values; called before a batch."""
        kept = self._space.get(_ATTRIBUTES)
        # A batch that broke off after keep, or before, leaves other attributes in the bolt.
        if kept != self._kept or not self._as_kept:
            self._set(kept)
        self._as_kept = False

    def keep(self) -> None:
        """Put the bolt's attributes into the state; called after a batch.

        Raises:
            AttributeStateError: an attribute cannot be pickled, or holds a tuple.
        """
        now = pickled_attributes(self._component, self._bolt)
        names = vars(self._bolt).keys() - self._left_alone - set(self._bolt.transient)
        for name in sorted(names - now.keys()):
            raise AttributeStateError(
                f"bolt {self._component!r} ({type(self._bolt).__name__}) is stateful, but its "
                f"attribute {name!r} cannot be pickled: name it in transient, and make it anew in "
                f"prepare"
            )
        changed = [name for name in sorted(now) if now[name] != self._prepared.get(name)]
        gone = sorted(self._prepared.keys() - now.keys())
        kept = None
        if changed or gone:
            values = {name: getattr(self._bolt, name) for name in changed}
            kept = cloudpickle.dumps((values, gone))
        if kept != self._space.get(_ATTRIBUTES):
            self._space.put(_ATTRIBUTES, kept)
        self._kept, self._as_kept = kept, True

    def _set(self, kept: bytes | None) -> None:
        changed, gone = ({}, []) if kept is None else cloudpickle.loads(kept)
        now = pickled_attributes(self._component, self._bolt)
        # Attributes of a batch that broke off must not be seen by the next.
        for name in now.keys() - self._prepared.keys():
            delattr(self._bolt, name)
        for name, data in self._prepared.items():
            if name not in changed and now.get(name) != data:
                setattr(self._bolt, name, cloudpickle.loads(data))
        for name, value in changed.items():
            setattr(self._bolt, name, value)
        for name in gone:
            vars(self._bolt).pop(name, None)


def pickled_attributes(component: str, bolt: AnyBolt) -> dict[str, bytes]:
    """Return the pickles of a bolt's own attributes, without transient and unpicklable ones.

    Raises:
        AttributeStateError: an attribute holds a tuple.
    """
    pickled = {}
    for name, value in vars(bolt).items():
        if name in _ENGINE_OWNED or name in bolt.transient:
            continue
        try:
            pickled[name] = cloudpickle.dumps(value)
        except TrackingError as error:
            raise AttributeStateError(
                f"bolt {component!r} ({type(bolt).__name__}) keeps a tuple in its "
                f"attribute {name!r} after the batch: {error}"
            ) from error
        except BaseException as error:  # any __reduce__ may raise anything
            if not is_of_value(error):
                raise
    return pickled
