"""The poller: long polls on a thread of their own, so that acks need not wait for them."""

import queue
import threading
from collections.abc import Callable
from typing import Any, TypeAlias, final

__all__ = ["Poller"]

Messages: TypeAlias = list[dict[str, Any]]


@final
class Poller:
    """Asks for messages, one call at a time, and holds the answer until it is fetched.

    Args:
        receive: makes one call for at most so many messages.
        unwanted: gets the messages of a call whose poller was left meanwhile.
    """

    def __init__(
        self, receive: Callable[[int], Messages], unwanted: Callable[[Messages], None]
    ) -> None:
        self._receive = receive
        self._unwanted = unwanted
        self._asked: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Messages | Exception] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._left = False
        self.under_way = False
        """Whether a call has been made whose answer is not fetched."""
        threading.Thread(target=self._run, name="sqs-poller", daemon=True).start()

    def ask(self, limit: int) -> None:
        """Begin a call, unless one is under way."""
        if not self.under_way:
            self.under_way = True
            self._asked.put(limit)

    def answer(self, wait_secs: float) -> Messages:
        """Return the messages of the call, or none if it takes longer.

        Raises:
            Exception: the call's own error.
        """
        if not self.under_way:
            return []
        try:
            answer = self._answers.get(timeout=wait_secs) if wait_secs else self._answers.get(False)
        except queue.Empty:
            return []
        self.under_way = False
        if isinstance(answer, Exception):
            raise answer
        return answer

    def leave(self) -> None:
        """End the thread after its call; messages of that call are unwanted."""
        with self._lock:
            self._left = True
        self._asked.put(0)

    def _run(self) -> None:
        while limit := self._asked.get():
            answer: Messages | Exception
            try:
                answer = self._receive(limit)
            except Exception as error:  # noqa: BLE001 - the caller's thread raises it
                answer = error
            with self._lock:
                if not self._left:
                    self._answers.put(answer)
                    continue
            if isinstance(answer, list) and answer:
                self._unwanted(answer)
