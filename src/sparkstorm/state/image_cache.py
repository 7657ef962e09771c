"""The state images that a process keeps from batch to batch, within a bound.

Spark runs a task in any idle process of an executor, so each process comes to hold an image of each
task. The cache releases an image

- if the process has not run the image's task for so long that the log may not reach back. So
  images of tasks that moved to another executor do not stay;
- if there is no room. Of the image just used and the least recently used image, the cache releases
  the one whose task runs here more rarely. Always releasing the least recently used image would be
  the worst choice where a process runs all tasks in turn: each image would go just before its use.
"""

from typing import Protocol, final

__all__ = ["Image", "ImageCache"]

_STALE_BATCHES = 100
"""The length of the log: an older image would most likely be read anew."""


class Image(Protocol):
    """An image that takes memory and can be read again."""

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        ...

    def release(self) -> None:
        """Give the memory back."""
        ...


@final
class ImageCache:
    """The images of a process's tasks, the least recently used first.

    Args:
        limit: the most bytes of all images together while none is in use.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._images: dict[int, tuple[Image, int]] = {}
        self._used: dict[int, int] = {}
        self._batch, self._now = -1, 0
        self.bytes = 0

    def keep(self, task: int, image: Image, batch: int) -> bool:
        """Keep an image after a batch if there is room; return whether the cache kept the image."""
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
        """Release the first image that must go; False if none must."""
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
