"""The spout's side of a hosted task: everything that runs on the thread of the spout."""

import os
import secrets
import threading
from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, final

import cloudpickle

from sparkstorm.components.spout import Spout
from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.dead_letters.letter_queue import DeadLetterQueue
from sparkstorm.planning.plan import Plan
from sparkstorm.processes.client import KeeperClient, end_keeper
from sparkstorm.sources.blame import DIED_OF_IT, FIRST_TRY, Attempts
from sparkstorm.sources.hosted.collector import (
    HostedCollector,
    emitted_row,
    failure_of,
    known_task,
)
from sparkstorm.sources.hosted.intake import Intake, LoadKey
from sparkstorm.sources.hosted.letters import HostedLetters
from sparkstorm.sources.hosted.loads import PendingLoad, Refused
from sparkstorm.sources.originals import Original
from sparkstorm.sources.retry import RetryPolicy
from sparkstorm.sources.spout_calls import calling, context_of, next_tuple_of, opening, run_method
from sparkstorm.texts.showing import shown
from sparkstorm.verdicts import Failure

__all__ = ["HostedSpout"]


@final
class HostedSpout:
    """The instance of a user's spout, and the ends of its messages.

    All methods run on the task's thread, but for :meth:`refuse` and the properties.

    Args:
        plan: the topology's plan.
        component: the spout's id.
        task: the task's number.
        intake: gets the messages that the spout emits.
        arrived: set when the spout has emitted.
        dead_letters: where dead letters go.
    """

    def __init__(
        self,
        plan: Plan,
        component: str,
        task: int,
        intake: Intake,
        arrived: threading.Event,
        dead_letters: DeadLetterQueue,
    ) -> None:
        spec = plan.spec(component)
        self.user: Spout = cloudpickle.loads(cloudpickle.dumps(spec.component))
        """The user's spout."""
        self.attempts = Attempts()
        self.given_up = 0
        self._plan = plan
        self._component = component
        self._task = task
        self._intake = intake
        self._arrived = arrived
        self._clock = dead_letters.clock
        self.seen = self._clock.monotonic()
        """When the spout's thread last came by: it may be inside of the user's code since then."""
        self._letters = HostedLetters(plan, component, task, dead_letters)
        self._config = plan.settings(component)
        self._policy = RetryPolicy.of(self._config)
        self._refused: deque[Refused] = deque()
        self._hurried: deque[Hashable] = deque()
        self._keeper = secrets.token_hex(8)
        self._is_open = False
        self._at_rest = True

    @property
    def refused(self) -> int:
        """How many messages cannot be sent, and the spout has not heard of it yet."""
        return len(self._refused)

    @property
    def exhausted(self) -> bool:
        """Whether the spout will emit nothing more.

        A spout that takes the last message in ``next_tuple`` is exhausted before it emits it or
        gives it up, so its answer while it runs does not count.
        """
        with calling(self._component, "exhausted"):
            return self.user.exhausted() and self._at_rest

    # --- the life of the spout -------------------------------------------------------------------

    def open(self) -> None:
        """Open the spout."""
        context = context_of(self._plan, self._component, self._task, self._clock)
        context.set_processes(KeeperClient(self._keeper, os.getpid()))
        self.user.context, self.user.collector = context, HostedCollector(self)
        with opening(self._component):
            run_method(self.user, "open", self._config, context, self.user.collector)
        self._is_open = True

    def shut(self) -> None:
        """Close the spout, once, if it was opened."""
        if self._is_open:
            self._is_open = False
            self.user.close()
            end_keeper(self._keeper)

    def next_tuple(self) -> None:
        """Ask for messages once."""
        self._at_rest = self.user.exhausted()
        next_tuple_of(self.user)
        self._at_rest = True

    # --- for the collector -----------------------------------------------------------------------

    def emitted(
        self, values: Sequence[Any], msg_id: Hashable, stream: str, direct: int | None
    ) -> None:
        """Put an emitted message into the intake."""
        row = emitted_row(self._plan, self._component, values, stream, direct=direct is not None)
        if direct is not None:
            direct = known_task(self._plan, self._component, direct)
        tracked = msg_id is not None and self._plan.tracked
        tries = self.attempts.emitted(msg_id) if tracked else FIRST_TRY
        if tries.width == 1 and self._policy.delay(attempt=tries.attempt - 1, key=0) is None:
            original = Original(stream, row, direct, self.now())
            self._refused.append(Refused(msg_id, DIED_OF_IT, original))
            return
        key = LoadKey(stream, tracked, tries.attempt, tries.width)
        self._intake.add(key, row, msg_id, direct)
        if not self._arrived.is_set():  # much cheaper than to set it once more
            self._arrived.set()
        if msg_id is not None and not tracked:
            run_method(self.user, "ack", msg_id)

    def give_up(
        self, msg_id: Hashable, failure: Failure, source: Mapping[str, Any] | None = None
    ) -> None:
        """Note that a message will not be tried again; on return its dead letter is written."""
        failure = failure_of(failure, self._component, self._task)
        self._letters.write(self._bury(msg_id, failure, source))

    def log(self, level: str, text: str) -> None:
        """Show a line to people."""
        self._letters.log(level, text)

    def now(self) -> float:
        """The time in seconds since 1970."""
        return self._letters.now()

    # --- the ends of messages --------------------------------------------------------------------

    def refuse(
        self, msg_id: Hashable, failure: Failure, stream: str, values: Any, direct: int | None
    ) -> None:
        """Let a message that cannot be sent fail, later, on the spout's thread."""
        self.log("error", f"message {shown(msg_id)} cannot be sent: {failure.message}")
        if msg_id is not None and self._plan.tracked:
            original = Original(stream, values, direct, self.now())
            self._refused.append(Refused(msg_id, failure, original))

    def ack(self, pending: PendingLoad, places: Sequence[int]) -> None:
        """Call the spout's ack for messages of one load."""
        for place in places:
            msg_id = pending.ids[place]
            self.attempts.forget(msg_id)
            run_method(self.user, "ack", msg_id)

    def fail(self, pending: PendingLoad, failed: Sequence[tuple[int, Failure]]) -> None:
        """Call the spout's fail for messages of one load, by place.

        Letters that the engine writes itself are written at once. A message that did not run waits
        for the next batch, as if emitted once more: the spout hears nothing, since it may count
        failures, or give up.
        """
        if not failed:
            return
        originals = pending.originals.of([place for place, _ in failed])
        letters: list[DeadLetter] = []
        for (place, why), original in zip(failed, originals, strict=True):
            msg_id = pending.ids[place]
            if why.counted:
                letters += self._fail(msg_id, why, original, pending.bytes_each)
            else:
                self.emitted(original.values, msg_id, original.stream, original.direct)
        self._letters.write(letters)

    def hurry(self, msg_ids: Sequence[Hashable]) -> int:
        """Let messages be tried at once, on the spout's thread; return how many the spout heeds."""
        if type(self.user).retry_now is Spout.retry_now:
            return 0
        self._hurried.extend(msg_ids)
        return len(msg_ids)

    def retry_hurried(self) -> None:
        """Tell the spout which messages people want to be tried at once."""
        while self._hurried:
            run_method(self.user, "retry_now", self._hurried.popleft())

    def fail_refused(self) -> None:
        """Call the spout's fail for the messages that could not be sent."""
        self.seen = self._clock.monotonic()
        while self._refused:
            msg_id, failure, original = self._refused[0]
            self._letters.write(self._fail(msg_id, failure, original, nbytes=0))
            self._refused.popleft()

    def _fail(
        self, msg_id: Hashable, failure: Failure, original: Original, nbytes: int
    ) -> list[DeadLetter]:
        """Tell the spout; return the letter of a message that the spout takes no interest in."""
        ran = failure is not DIED_OF_IT
        known = self.attempts.failed(msg_id, original, nbytes, ran=ran)
        failure = _as_attempt(failure, known.attempts)
        if type(self.user).fail is Spout.fail:
            return self._bury(msg_id, failure)
        run_method(self.user, "fail", msg_id, failure)
        return []

    def _bury(
        self, msg_id: Hashable, failure: Failure, source: Mapping[str, Any] | None = None
    ) -> list[DeadLetter]:
        """Count a message as given up and return its letter."""
        known = self.attempts.forget(msg_id)
        self.given_up += 1
        return [self._letters.letter(msg_id, failure, known, source)]


@lru_cache(maxsize=100)
def _as_attempt(failure: Failure, attempt: int) -> Failure:
    """Return a failure as that of this attempt: one object for all messages that failed alike."""
    return replace(failure, attempt=attempt)
