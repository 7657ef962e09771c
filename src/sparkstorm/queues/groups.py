"""Groups: one message of a group is under way at a time, so that groups keep their order."""

from collections import deque
from collections.abc import Hashable
from typing import final

from sparkstorm.queues.queue import Delivery

__all__ = ["Groups"]


@final
class Groups:
    """Holds back the later messages of each group until the first is done.

    A queue with groups hands out several messages of a group at once. Emitted at once, a later
    message could overtake a failed one that waits for its retry.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Delivery]] = {}
        self._group_of: dict[Hashable, str] = {}
        self._free: deque[Delivery] = deque()

    def __len__(self) -> int:
        return len(self._free) + sum(map(len, self._waiting.values()))

    def admit(self, delivery: Delivery) -> bool:
        """Return whether a message may be emitted now; if not, :meth:`next_free` returns it."""
        if delivery.group is None:
            return True
        if delivery.group in self._waiting:
            self._waiting[delivery.group].append(delivery)
            return False
        self._waiting[delivery.group] = deque()
        self._group_of[delivery.message_id] = delivery.group
        return True

    def done(self, message_id: Hashable) -> None:
        """Note the end of a message: the next of its group is free."""
        group = self._group_of.pop(message_id, None)
        if group is None:
            return
        waiting = self._waiting[group]
        if not waiting:
            del self._waiting[group]
            return
        following = waiting.popleft()
        self._group_of[following.message_id] = group
        self._free.append(following)

    def next_free(self) -> Delivery | None:
        """Take out a message whose turn has come, or None."""
        return self._free.popleft() if self._free else None
