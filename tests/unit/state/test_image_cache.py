"""Which images of state a process keeps: within the bound, and those that it is going to need."""

import tracemalloc
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.inbox import Inbox, PacketOrigin
from sparkstorm.state.image import StateImage
from sparkstorm.state.image_cache import ImageCache
from sparkstorm.state.stores import MemoryStore
from sparkstorm.tuples import Fields, Tuple

MIB = 1 << 20


class Sized:
    """An image of a size that a test decides; ``held`` says whether it takes memory."""

    def __init__(self, size: int = 1) -> None:
        self.full, self.held, self.reads = size, False, 0

    @property
    def size(self) -> int:
        return self.full if self.held else 0

    def read(self) -> None:
        self.reads += not self.held
        self.held = True

    def release(self) -> None:
        self.held = False


def run(cache: ImageCache, images: dict[int, Sized], task: int, batch: int) -> bool:
    images[task].read()
    return cache.keep(task, images[task], batch)


@given(
    limit=st.integers(0, 20),
    history=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 8), st.integers(0, 150))),
)
def test_images_between_batches_stay_within_the_bound(
    limit: int, history: list[tuple[int, int, int]]
) -> None:
    """Whatever runs when and grows as it likes; whoever is let go has given its memory back."""
    cache, images = ImageCache(limit), {task: Sized() for task in range(6)}
    batch = 0
    for task, size, later in history:
        batch += later
        images[task].full = size
        is_kept = run(cache, images, task, batch)
        assert is_kept == images[task].held
        held = [image for image in images.values() if image.held]
        assert (len(cache), cache.bytes) == (len(held), sum(image.full for image in held))
        assert cache.bytes <= limit


def test_tasks_that_run_in_turn_do_not_push_each_other_out() -> None:
    """One process, twelve tasks, room for six: six are read once, six in each batch."""
    cache, images = ImageCache(6), {task: Sized() for task in range(12)}
    for batch in range(50):
        for task in images:
            run(cache, images, task, batch)
    assert sorted(image.reads for image in images.values()) == [1] * 6 + [50] * 6


def test_processes_that_take_any_task_use_all_their_room() -> None:
    """Spark gives tasks to four processes at random: half the images are there, so are the hits."""
    dice, batches = Random(7), 200
    caches = [ImageCache(6) for _ in range(4)]
    images = [{task: Sized() for task in range(12)} for _ in caches]
    for batch in range(batches):
        for task in range(12):
            process = dice.randrange(4)
            run(caches[process], images[process], task, batch)
    assert [len(cache) for cache in caches] == [6] * 4
    reads = sum(image.reads for mine in images for image in mine.values())
    assert 0.4 < reads / (12 * batches) < 0.6


def test_tasks_that_moved_away_make_room_at_once() -> None:
    """Images that nobody uses here give way to those of the tasks that came instead."""
    cache, images = ImageCache(6), {task: Sized() for task in range(12)}
    for batch in range(20):
        for task in range(12) if batch == 0 else range(6) if batch < 10 else range(6, 12):
            run(cache, images, task, batch)
    assert [task for task, image in images.items() if image.held] == [6, 7, 8, 9, 10, 11]
    assert max(images[task].reads for task in range(6, 12)) <= 3


def test_an_image_that_is_not_used_goes_though_there_is_room() -> None:
    """A task that runs elsewhere now leaves nothing here; one that runs seldom keeps its image."""
    cache, images = ImageCache(100), {task: Sized() for task in range(3)}
    for batch in range(300):
        for task in (0, *([1] if batch < 50 else []), *([2] if batch % 90 == 0 else [])):
            run(cache, images, task, batch)
    assert [image.held for image in images.values()] == [True, False, True]
    assert images[2].reads == 1


def test_batches_that_begin_at_zero_again_are_later_ones() -> None:
    """The same topology may run again on another checkpoint, in the same processes."""
    cache, images = ImageCache(2), {task: Sized() for task in range(4)}
    for first in (5000, 0):
        for batch in range(first, first + 5):
            for task in (0, 1) if first else (2, 3):
                run(cache, images, task, batch)
    assert [task for task, image in images.items() if image.held] == [2, 3]


def filled(kind: str, count: int) -> StateImage:
    """An image as a batch leaves it."""
    image, store = StateImage(), MemoryStore()
    image.load(store)
    inbox = Inbox((), 1, BatchInfo(number=0))
    image.begin(inbox, ())
    origin = PacketOrigin(inbox, Fields(("word",)), "words", "default", 1)
    for n in range(count):
        if kind == "counts":
            image.put(f"user/{n}", n)
        elif kind == "texts":
            image.named("texts").put(n, f"{n}" * 500)
        elif kind == "lists":
            image.put(n, list(range(n, n + 10)))
        else:
            tup = Tuple((f"word {n}",), origin, inbox.adopt((n + 1,), (n + 1 << 40,), 0))
            image.tuples("held").add(f"key {n}", tup)
    image.write(store, 0, "t")
    image.load(store)
    return image


@pytest.mark.parametrize("kind", ["counts", "texts", "lists", "tuples"])
def test_the_estimate_is_near_the_truth(kind: str) -> None:
    """Within a factor of two of what Python takes for the same state, read by a new process."""
    store = MemoryStore()
    written = filled(kind, 5000)
    written._write_snapshot(store)
    written._log.save(store)
    StateImage().load(store)  # the first load of all fills caches that stay
    tracemalloc.start()
    try:
        image = StateImage()
        image.load(store)
        taken = tracemalloc.get_traced_memory()[0]
        assert 0.5 < image.size / taken < 2, f"{image.size:,} of {taken:,}"
        image.release()
        assert image.size == 0
        assert tracemalloc.get_traced_memory()[0] < 0.2 * taken
    finally:
        tracemalloc.stop()


def test_what_is_stored_key_by_key_is_not_kept_between_batches() -> None:
    """In RocksDB, what a batch touches has to fit, once: not in each process that ever ran it."""
    store, image = MemoryStore(), StateImage(in_memory=False)
    image.load(store)
    tracemalloc.start()
    try:
        for n in range(1000):
            image.put(n, str(n) * 400)
        image.write(store, 0, "t")
        store.commit()
        store._chunks, store._committed = {}, {}
        assert tracemalloc.get_traced_memory()[0] < MIB // 4
        assert len(image) == 1000
        assert image.size < 100
    finally:
        tracemalloc.stop()


def test_an_image_keeps_no_tuples_of_the_last_batch() -> None:
    """They would take as much memory again in each process, until the task runs there."""
    image: Any = filled("tuples", 10)
    assert len(image._held.inbox) == 0
    assert image.tuples("held")._tuples == {}
    assert len(image.tuples("held")) == 10
