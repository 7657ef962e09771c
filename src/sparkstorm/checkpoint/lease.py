"""The lease: at most one driver at a time writes to a checkpoint.

A driver takes the lease by creating the file of the next epoch, ``lease/N``. Only one driver can
create a file, so the creator of the newest file holds the lease. The file never changes. Beside the
file the holder renews ``beats/N``, as a sign of life. Drivers need no common clock: a waiting
driver watches whether the beat changes, by its own clock.

A lease is free if its holder released it, if its process is seen to have died, or if no beat came
for the time-out. A paused holder that wakes up finds a newer epoch, since it asks before each write
(:meth:`Lease.check`). A write already under way goes to a name with the old epoch
(:mod:`sparkstorm.batches.journal`), and later drivers ignore the name.

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
"""A lease is stale after this many missing beats in a row."""

_EPOCH = re.compile("[1-9][0-9]*")

_logger = logger_of(__name__)


class Fence(Protocol):
    """The guard between a driver and the checkpoint."""

    @property
    def epoch(self) -> int:
        """The number of this driver's lease; later drivers have higher numbers."""
        ...

    def check(self) -> None:
        """Check that this driver may still write.

        Raises:
            SupersededError: another run has taken over.
        """
        ...


@final
class Unfenced:
    """The fence of files that no other process can reach: the last comer has the newest epoch."""

    def __init__(self, files: CheckpointFiles) -> None:
        self.epoch = _newest(files) + 1
        files.create(f"lease/{self.epoch}", b"")

    def check(self) -> None:
        """Do nothing: no other run can take over."""


@final
class Lease:
    """The lease of one checkpoint, as one run sees it; use it as a context manager.

    Args:
        files: the checkpoint.
        clock: the source of time.
        me: the run that wants the lease.
        timeout_secs: how long a lease lasts without a beat.
        died: returns whether a holder's process has ended for certain.
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
    def me(self) -> Holder:
        """The run that wants the lease, in this process."""
        return self._me

    @property
    def run(self) -> str:
        """The id of the run that wants the lease."""
        return self._me.run

    def acquire(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Take the lease; wait while it may still turn out to be stale.

        Raises:
            CheckpointError: another run holds the lease, and lives.
        """
        said = False
        while not self.try_acquire():
            if not said:
                said = True
                _logger.warning(
                    "the checkpoint was in use by %s. That run has not ended in good order and may "
                    "still live: this run takes over unless it gives a sign within %.0f s",
                    self._holder(self._newest()),
                    self._timeout_secs,
                )
            sleep(self.beat_secs)

    def try_acquire(self) -> bool:
        """Look once, and take the lease if it is free; else look again a beat later.

        Raises:
            CheckpointError: another run holds the lease, and lives.
        """
        newest = self._newest()
        return (newest == 0 or self._is_free(newest)) and self._take(newest + 1)

    def check(self) -> None:
        """Check that this run still holds the lease.

        Raises:
            SupersededError: another run has taken over.
        """
        newest = self._newest()
        if newest != self.epoch:
            raise SupersededError(
                f"this run ({self._me.run}) was out of reach for so long that another run has "
                f"taken over its checkpoint: {self._holder(newest)}. This run has stopped; the "
                f"other run finishes its work"
            )

    def renew(self) -> None:
        """Show that this run lives; call it every ``beat_secs``.

        Raises:
            SupersededError: another run has taken over.
        """
        self.check()
        self._beats += 1
        self._beat(released=False)

    def release(self) -> None:
        """Free the lease at once; a lost lease is no error."""
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
            # A live local holder beats by this machine's clock, so a recent beat needs no waiting.
            if holder is not None and holder.is_local and self._is_recent(beat["at"]):
                raise _in_use(holder)
        if self._watched[:2] != (epoch, data):
            raise _in_use(holder)
        # Nothing has changed since the first look: stale after the time-out, by this run's own
        # clock.
        return now - self._watched[2] >= self._timeout_secs

    def _opened(self, name: str) -> bytes | None:
        """Return a file's content; None for a damaged file, or one still being written.

        Without the content nothing is known of the holder, and the lease is free when it becomes
        stale.
        """
        data = self._files.read(name)
        try:
            return unseal(data) if data else None
        except BrokenSealError as error:
            _logger.warning("the checkpoint's file sparkstorm/%s is not used: %s", name, error)
            return None

    def _is_recent(self, wall: float) -> bool:
        """Return whether a time, by this machine's own clock, is less than two beats ago."""
        return 0.0 <= self._clock.wall() - wall < 2 * self.beat_secs

    def _take(self, epoch: int) -> bool:
        name, mine = f"lease/{epoch}", seal(self._me.to_json())
        # A storage client may repeat a request after a lost answer. Then the file is our own.
        if not self._files.create(name, mine) and self._files.read(name) != mine:
            return False
        # This run was so slow that later epochs have come and deleted the older files.
        if self._newest() != epoch:
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
        # Not lasting: a power failure ends the holder too, and beats must not wait for a busy disk.
        self._files.write(f"beats/{self.epoch}", seal(json.dumps(beat).encode()), lasting=False)


def _newest(files: CheckpointFiles) -> int:
    return max(_epochs(files, "lease"), default=0)


def _epochs(files: CheckpointFiles, folder: str) -> list[int]:
    """Return the numbers of a folder's files; other names were put there by people."""
    return [int(name) for name in files.names(folder) if _EPOCH.fullmatch(name)]


def _in_use(holder: Holder | None) -> CheckpointError:
    return CheckpointError(
        f"the checkpoint is in use by {holder or 'a run that is just starting'}: stop that run "
        f"first, or give this one another checkpoint folder"
    )
