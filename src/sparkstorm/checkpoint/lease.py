"""The lease: at most one driver at a time writes to a checkpoint.

Every driver that takes the lease creates the file of the next epoch, ``lease/N``, which only one
can: whoever created the newest one holds the lease. That file never changes. Beside it the holder
renews ``beats/N``, so that others see it live. They need no common clock: who wants the lease
watches whether the beat changes, by a clock of its own.

A lease is free if its holder released it, if its process is seen to have died, or if it was not
renewed for the time-out. A holder that was only paused, and wakes up, finds a newer epoch: it asks
before each write (:meth:`Lease.check`), and what it may be just about to write goes to names that
have its own epoch in them (:mod:`sparkstorm.batches.journal`), where it harms nobody.

The newest file is never deleted, so epochs only grow.
"""

import json
import re
import time
from collections.abc import Callable
from typing import Protocol, final

from sparkstorm.checkpoint.files import CheckpointFiles
from sparkstorm.checkpoint.holder import Holder
from sparkstorm.checkpoint.seal import BrokenSealError, seal, unseal
from sparkstorm.clock import Clock
from sparkstorm.errors import CheckpointError, SupersededError
from sparkstorm.texts.logs import logger_of

__all__ = ["Fence", "Lease", "Unfenced"]

_BEATS = 10
"""A lease is stale when so many beats in a row are missing."""

_EPOCH = re.compile("[1-9][0-9]*")

_logger = logger_of(__name__)


class Fence(Protocol):
    """What stands between a driver and the checkpoint."""

    @property
    def epoch(self) -> int:
        """The number of this driver's lease; later drivers have higher ones."""
        ...

    def check(self) -> None:
        """Make sure that this driver may still write.

        Raises:
            SupersededError: another run has taken over.
        """
        ...


@final
class Unfenced:
    """For files that nobody else can reach meanwhile: whoever comes last has the newest epoch."""

    def __init__(self, files: CheckpointFiles) -> None:
        self.epoch = _newest(files) + 1
        files.create(f"lease/{self.epoch}", b"")

    def check(self) -> None:
        """Nothing can have happened."""


@final
class Lease:
    """The lease of one checkpoint in the eyes of one run; use it as a context manager.

    Args:
        files: the checkpoint.
        clock: where the time comes from.
        me: who wants it.
        timeout_secs: how long a lease may go without being renewed.
        died: tells of a holder that its process has ended for certain.
    """

    def __init__(
        self,
        files: CheckpointFiles,
        clock: Clock,
        me: Holder,
        timeout_secs: float,
        died: Callable[[Holder], bool] = Holder.has_died,
    ) -> None:
        self.epoch = 0
        self.beat_secs = timeout_secs / _BEATS
        self._files = files
        self._clock = clock
        self._me = me
        self._timeout_secs = timeout_secs
        self._died = died
        self._beats = 0
        self._watched: tuple[int, bytes | None, float] | None = None

    @property
    def run(self) -> str:
        """The id of the run that wants the lease."""
        return self._me.run

    def acquire(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Take the lease; wait for as long as it may still turn out to be stale.

        Raises:
            CheckpointError: another run holds it, and lives.
        """
        said = False
        while not self.try_acquire():
            if not said:
                said = True
                _logger.warning(
                    "the checkpoint was in use by %s, which has not ended in good order and may "
                    "still live: it is taken over unless it gives a sign within %.0f s",
                    self._holder(self._newest()),
                    self._timeout_secs,
                )
            sleep(self.beat_secs)

    def try_acquire(self) -> bool:
        """Look once, and take the lease if it is free; if not, look again a beat later.

        Raises:
            CheckpointError: another run holds it, and lives.
        """
        newest = self._newest()
        return (newest == 0 or self._is_free(newest)) and self._take(newest + 1)

    def check(self) -> None:
        """Make sure that this run still holds the lease.

        Raises:
            SupersededError: another run has taken over.
        """
        newest = self._newest()
        if newest != self.epoch:
            raise SupersededError(
                f"this run ({self._me.run}) was out of reach for so long that another one has "
                f"taken over its checkpoint: {self._holder(newest)}. This one has stopped; what it "
                f"had not finished is done by the other"
            )

    def renew(self) -> None:
        """Show that this run lives; to be called every ``beat_secs``.

        Raises:
            SupersededError: another run has taken over.
        """
        self.check()
        self._beats += 1
        self._beat(released=False)

    def release(self) -> None:
        """Let others have the lease at once; does nothing if it is lost already."""
        if self._newest() == self.epoch:
            self._beat(released=True)

    def __enter__(self) -> "Lease":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"Lease(epoch={self.epoch}, {self._me})"

    def _newest(self) -> int:
        return _newest(self._files)

    def _holder(self, epoch: int) -> Holder | None:
        data = self._opened(f"lease/{epoch}")
        return None if data is None else Holder.from_json(data)

    def _is_free(self, epoch: int) -> bool:
        data, holder = self._opened(f"beats/{epoch}"), self._holder(epoch)
        beat = json.loads(data) if data else {"at": 0.0, "released": False}
        if beat["released"]:
            return True
        if holder is not None and self._died(holder):
            _logger.info("the checkpoint was in use by %s, whose process has ended", holder)
            return True
        now = self._clock.monotonic()
        if self._watched is None:
            self._watched = epoch, data, now
            if holder is not None and holder.is_local and self._is_recent(beat["at"]):
                raise _in_use(holder)
        if self._watched[:2] != (epoch, data):
            raise _in_use(holder)
        return now - self._watched[2] >= self._timeout_secs

    def _opened(self, name: str) -> bytes | None:
        """Return a file's content; None if it is just being written, or damaged.

        Then nothing is known of the holder, and the lease is free when it becomes stale.
        """
        data = self._files.read(name)
        try:
            return unseal(data) if data else None
        except BrokenSealError as error:
            _logger.warning("the checkpoint's file sparkstorm/%s is not used: %s", name, error)
            return None

    def _is_recent(self, wall: float) -> bool:
        """Whether a time, by this machine's own clock, is less than two beats ago."""
        return 0.0 <= self._clock.wall() - wall < 2 * self.beat_secs

    def _take(self, epoch: int) -> bool:
        name, mine = f"lease/{epoch}", seal(self._me.to_json())
        # a client may try a request again whose answer was lost: then this run was the faster one
        if not self._files.create(name, mine) and self._files.read(name) != mine:
            return False
        if self._newest() != epoch:  # so slow that later ones have come and gone
            self._files.delete(f"lease/{epoch}")
            return False
        self.epoch = epoch
        self._beat(released=False)
        for folder in ("lease", "beats"):
            for number in _epochs(self._files, folder):
                if number < epoch:
                    self._files.delete(f"{folder}/{number}")
        return True

    def _beat(self, *, released: bool) -> None:
        beat = {"beat": self._beats, "at": self._clock.wall(), "released": released}
        # the holder is gone after a power failure, and beats must not wait for a busy disk
        self._files.write(f"beats/{self.epoch}", seal(json.dumps(beat).encode()), lasting=False)


def _newest(files: CheckpointFiles) -> int:
    return max(_epochs(files, "lease"), default=0)


def _epochs(files: CheckpointFiles, folder: str) -> list[int]:
    """The numbers that files are named by; whatever else people have put there is none of ours."""
    return [int(name) for name in files.names(folder) if _EPOCH.fullmatch(name)]


def _in_use(holder: Holder | None) -> CheckpointError:
    return CheckpointError(
        f"the checkpoint is in use by {holder or 'a run that is just starting'}: stop that run "
        f"first, or give this one another checkpoint folder"
    )
