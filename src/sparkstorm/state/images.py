"""The state images that one process keeps from batch to batch, within a bound.

Spark runs a task in whichever of an executor's processes is idle, so each process comes to hold an
image of each task. An image is let go

- when the process has not run its task for so long that the log may not reach back to it. So
  images of tasks that have moved to another executor do not stay;
- when there is no room for it. Of the image just used and the one used least recently, the one
  goes whose task runs here more rarely. Letting the least recently used one go in any case would
  be the worst choice where one process runs all tasks in turn: each image would go just before it
  is wanted.
"""

from typing import Protocol, final

__all__ = ["Image", "ImageCache"]

_STALE_BATCHES = 100
"""As many as the log holds: an older image would most likely be read anew."""


class Image(Protocol):
    """What takes memory and can be read again."""

    @property
    def size(self) -> int:
        """An estimate of its bytes."""
        ...

    def release(self) -> None:
        """Give the memory back."""
        ...


@final
class ImageCache:
    """The images of a process's tasks, the least recently used first.

    Args:
        limit: the bytes that all of them may take while none is used.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._images: dict[int, tuple[Image, int]] = {}
        self._used: dict[int, int] = {}
        self._batch, self._now = -1, 0
        self.bytes = 0

    def keep(self, task: int, image: Image, batch: int) -> bool:
        """Keep an image that a batch has used, if there is room; tell whether it was kept."""
        if batch != self._batch:  # counted here: another run of the topology begins at 0 again
            self._batch, self._now = batch, self._now + 1
        gap = self._now - self._used.get(task, self._now - _STALE_BATCHES)
        self._used[task] = self._now
        self._drop(task)
        size = image.size
        self._images[task] = image, size
        self.bytes += size
        while self._release_one(task, max(gap, 1)):
            pass
        return task in self._images

    def __len__(self) -> int:
        return len(self._images)

    def __repr__(self) -> str:
        return f"ImageCache({len(self)} images, {self.bytes:,} of {self._limit:,} bytes)"

    def _release_one(self, task: int, gap: int) -> bool:
        """Let the first image go that has to; False if none has to."""
        oldest = next(iter(self._images), task)
        age = self._now - self._used[oldest]
        is_over = self.bytes > self._limit
        if age <= _STALE_BATCHES and not is_over:
            return False
        out = oldest if age > (gap if is_over else _STALE_BATCHES) else task
        image = self._drop(out)
        if image is None:
            return False
        image.release()
        return True

    def _drop(self, task: int) -> Image | None:
        image, size = self._images.pop(task, (None, 0))
        self.bytes -= size
        return image
