"""State against a plain dictionary, through aborted and repeated batches; with both back ends."""

import pickle
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkstorm.state import log
from sparkstorm.state.expiring import Expiring
from sparkstorm.state.image import StateImage
from sparkstorm.state.spaces.key_values import KeyValues
from sparkstorm.state.stores import MemoryStore

keys = st.integers(0, 12) | st.sampled_from(["a", "b"])
values = st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=3)
changes = st.lists(
    st.tuples(st.just("put"), keys, values)
    | st.tuples(st.just("add"), keys, values)
    | st.tuples(st.just("delete"), keys, st.none()),
    max_size=6,
)
batches = st.lists(
    st.tuples(
        st.integers(0, 2),  # which worker process runs it
        changes,
        st.sampled_from(["commit", "abort", "abort and forget", "run twice"]),
        st.sets(st.integers(0, 2)),  # in which the image had to make room before
    ),
    max_size=25,
)


def apply(image: Any, model: dict[Any, Any], todo: list[tuple[str, Any, Any]]) -> None:
    for what, key, value in todo:
        if what == "put":
            image.put(key, value)
            model[key] = value
        elif what == "add":
            add(image, model, key, value)
        else:
            image.delete(key)
            model.pop(key, None)


def add(image: KeyValues, model: dict[Any, Any], key: Any, amount: Any) -> None:
    try:
        model[key] = model[key] + amount if key in model else amount
    except TypeError:  # text and a number, say
        with pytest.raises(TypeError):
            image.add(key, amount)
    else:
        assert image.add(key, amount) == model[key]


def content(image: KeyValues | Expiring) -> dict[Any, Any]:
    return dict(image.items())


def read_anew(store: MemoryStore, *, in_memory: bool = True) -> StateImage:
    """The state as a process sees it that has just started."""
    image = StateImage(in_memory=in_memory)
    image.load(store)
    return image


both_back_ends = pytest.mark.parametrize("in_memory", [True, False], ids=["memory", "rocksdb"])


@both_back_ends
@given(history=batches, most_log=st.integers(1, 4))
@settings(max_examples=settings().max_examples * 2)
def test_every_process_sees_what_was_committed(
    in_memory: bool, history: list[tuple[int, Any, str, set[int]]], most_log: int
) -> None:
    """Whoever runs the next batch, after any aborted attempts, sees the committed state exactly."""
    store, model = MemoryStore(), dict[Any, Any]()
    images = [StateImage(in_memory=in_memory) for _ in range(3)]
    limits = (log._MAX_LOG, log._SNAPSHOT_ITEMS)
    log._MAX_LOG, log._SNAPSHOT_ITEMS = most_log, 3
    try:
        version = 0
        for attempt, (process, todo, end, released) in enumerate(history):
            for other in released:
                images[other].release()
            image = images[process]
            image.load(store)
            assert content(image) == model
            assert list(image.items()) == list(read_anew(store, in_memory=in_memory).items()), (
                "their order too"
            )
            assert len(image) == len(model)
            after = dict(model)
            apply(image, after, todo)
            image.write(store, version, f"attempt {attempt}")
            if end == "run twice":  # another process does the same, and that one is committed
                store.rollback()
                twin = images[(process + 1) % 3]
                twin.load(store)
                apply(twin, dict(model), todo)
                twin.write(store, version, f"attempt {attempt} again")
            if end.startswith("abort"):
                store.rollback()
                if end == "abort and forget":
                    images[process] = StateImage(in_memory=in_memory)
                continue
            store.commit()
            model, version = after, version + 1
        for image in (*images, StateImage(in_memory=in_memory)):
            image.load(store)
            assert content(image) == model
    finally:
        log._MAX_LOG, log._SNAPSHOT_ITEMS = limits


@both_back_ends
@given(before=changes, after=changes)
def test_undo_takes_back_the_running_call_only(in_memory: bool, before: Any, after: Any) -> None:
    """Undo restores values, deleted keys and new ones; what is written then is what is left."""
    store, image, model = MemoryStore(), StateImage(in_memory=in_memory), dict[Any, Any]()
    image.load(store)
    apply(image, model, before)
    image.call.changes = 0  # as before each execute
    apply(image, dict(model), after)
    image.call.undo()
    assert content(image) == model
    image.write(store, 0, "attempt")
    store.commit()
    assert content(read_anew(store, in_memory=in_memory)) == model


def test_what_a_batch_left_that_broke_off_is_dropped() -> None:
    """A job may end in the middle of a task; the process that ran it goes on with what counts."""
    store, image = MemoryStore(), StateImage()
    image.load(store)
    image.put("k", 1)
    image.write(store, 0, "a")
    image.load(store)
    image.put("k", 2)
    image.delete("gone")
    image.load(store)
    assert content(image) == {"k": 1}
    assert len(image) == 1


@both_back_ends
@given(history=st.lists(st.tuples(st.sampled_from(["", "a", "b"]), changes), max_size=8))
def test_named_states_know_nothing_of_each_other(
    in_memory: bool, history: list[tuple[str, Any]]
) -> None:
    """Each has its keys, and all of them are there in every process."""
    store, image = MemoryStore(), StateImage(in_memory=in_memory)
    models: dict[str, dict[Any, Any]] = {"": {}, "a": {}, "b": {}}
    for version, (name, todo) in enumerate(history):
        image.load(store)
        apply(image.named(name) if name else image, models[name], todo)
        image.write(store, version, str(version))
    anew = read_anew(store, in_memory=in_memory)
    image.load(store)
    for one in (image, anew):
        states = {"": one, "a": one.named("a"), "b": one.named("b")}
        assert {name: content(state) for name, state in states.items()} == models
        assert {name: len(state) for name, state in states.items()} == {
            name: len(model) for name, model in models.items()
        }


@both_back_ends
def test_keys_are_found_by_prefix(in_memory: bool) -> None:
    """Of text, of bytes, of tuples; keys of another kind have no such prefix."""
    image = StateImage(in_memory=in_memory)
    for key in ("user/1", "user/2", "shop/1", ("user", 1), ("shop", 1), b"user", 7):
        image.put(key, str(key))
    image.delete("user/2")
    assert dict(image.items("user/")) == {"user/1": "user/1"}
    assert list(image.keys(("user",))) == [("user", 1)]
    assert list(image.keys(b"us")) == [b"user"]
    assert list(image.keys()) == [key for key, _ in image.items()]


@both_back_ends
def test_a_state_may_be_changed_while_it_is_iterated(in_memory: bool) -> None:
    """What is iterated over was there at the start and is there still."""
    image = StateImage(in_memory=in_memory)
    for key in range(5):
        image.put(key, key)
    seen = []
    for key in image.keys():  # noqa: SIM118 - not a dict
        seen.append(key)
        image.delete(key + 1)
        image.put(key + 100, 0)
    assert seen == [0, 2, 4]


def test_snapshots_bound_the_log() -> None:
    """However long it runs, the store holds a bounded number of chunks."""
    store, image = MemoryStore(), StateImage()
    most = 0
    for version in range(1000):
        image.load(store)
        image.put(version % 50, version)
        image.write(store, version, f"{version}")
        store.commit()
        most = max(most, len(store._chunks))
    assert most <= log._MAX_LOG + 2
    fresh = StateImage()
    fresh.load(store)
    assert content(fresh) == {key: 950 + key for key in range(50)}


@pytest.mark.parametrize("keys", [50, 20_000])
def test_an_image_that_lags_behind_reads_no_snapshot(
    keys: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four processes run a task at random: each gets along with the chunks of the others."""
    reads = []
    read = StateImage._read_anew

    def noted(image: StateImage, *args: Any) -> Any:
        reads.append(image)
        return read(image, *args)

    monkeypatch.setattr(StateImage, "_read_anew", noted)
    store, images, dice = MemoryStore(), [StateImage() for _ in range(4)], Random(4)
    for version in range(500):
        image = dice.choice(images)
        image.load(store)
        for _ in range(max(1, keys // 500)):
            image.add(dice.randrange(keys))
        image.write(store, version, f"{version}")
        store.commit()
    assert store._committed.keys() & {f"log/{version}" for version in range(300)} == set()
    assert any(key.startswith("snap/") for key in store._committed)
    assert len(reads) <= len(images)


@pytest.mark.sweep
def test_a_chunk_that_is_not_written_breaks_the_log_off() -> None:
    """A batch that changes more than there is is a snapshot alone: no older image catches up."""
    store, here, there = MemoryStore(), StateImage(), StateImage()
    for image, version, count in ((there, 0, 10), (here, 1, 30_000), (there, 2, 10), (here, 3, 1)):
        image.load(store)
        for key in range(count):
            image.put(key, version)
        image.write(store, version, f"{version}")
        store.commit()
        assert content(image) == content(read_anew(store))
    assert sorted(content(here).values())[:12] == [1] * 12
    assert [key for key in store._committed if key.startswith("log/")] == ["log/2", "log/3"]


@pytest.mark.sweep
def test_a_large_log_is_replaced_by_a_snapshot() -> None:
    """The log's items stay within about the size of the state, so that reading it stays cheap."""
    store, image = MemoryStore(), StateImage()
    for version in range(20):
        image.load(store)
        for key in range(4_000):
            image.put(key, version)
        image.write(store, version, f"{version}")
        store.commit()
    chunks = [pickle.loads(data) for name, data in store._chunks.items() if name != "head"]
    assert sum(len(chunk[""]) for chunk in chunks) <= 4_000 + log._SNAPSHOT_MIN


def test_no_chunk_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a batch changed, and the whole state, are cut by their bytes; a single value is not."""
    most = 10_000
    monkeypatch.setattr(log, "_CHUNK_BYTES", most)
    store, image = MemoryStore(), StateImage()
    wanted: dict[Any, Any] = {}
    for version in range(4):
        image.load(store)
        for key in range(40):
            wanted[key] = f"{version}" * 1_000
            image.put(key, wanted[key])
        image.put("large", "x" * 2 * most)
        image.write(store, version, f"{version}")
        store.commit()
    sizes = sorted(len(data) for data in store._chunks.values())
    assert sizes[-2] <= most < sizes[-1]
    assert content(read_anew(store)) == {**wanted, "large": "x" * 2 * most}


@both_back_ends
def test_values_are_copies(in_memory: bool) -> None:
    """A value that is changed without put changes nowhere; what was put is as it was then."""
    image = StateImage(in_memory=in_memory)
    given_in = [1]
    image.put("k", given_in)
    given_in.append(2)
    got = image.get("k")
    got.append(3)
    assert image.get("k") == [1]
    assert image.get("absent", "default") == "default"
    assert "k" in image


def test_damaged_store_is_an_error() -> None:
    """A chunk that the head names but that is gone is not an empty state."""
    store, image = MemoryStore(), StateImage()
    image.put("k", 1)
    image.write(store, 0, "t")
    store.delete("log/0")
    with pytest.raises(KeyError, match="damaged"):
        StateImage().load(store)


def test_the_store_is_asked_for_single_keys_once_a_batch() -> None:
    """State larger than memory: a batch reads the keys it touches, and writes those it changed."""

    class Counting:
        """A store that counts what is asked of it."""

        def __init__(self) -> None:
            self.store, self.asked, self.put_keys = MemoryStore(), 0, 0

        def get(self, key: str) -> bytes | None:
            self.asked += key.startswith("key/")
            return self.store.get(key)

        def put(self, key: str, value: bytes) -> None:
            self.put_keys += key.startswith("key/")
            self.store.put(key, value)

        def delete(self, key: str) -> None:
            self.store.delete(key)

        def entries(self, prefix: str) -> Any:
            return self.store.entries(prefix)

    store, image = Counting(), StateImage(in_memory=False)
    for version in range(3):
        image.load(store)
        for key in range(100):
            image.add(key % 10)
        image.write(store, version, str(version))
    assert (store.asked, store.put_keys) == (30, 30)
    assert len(image) == 10
    base: Any = read_anew(store.store)._base
    assert len(base.keys()) == 0, "nothing of it is in the log"


def test_keys_of_rocksdb_must_be_the_same_in_every_process() -> None:
    """Equal keys find each other whatever their type; others are refused with what to use."""
    store, image = MemoryStore(), StateImage(in_memory=False)
    image.load(store)
    image.put(1, "one")
    image.put(("a", 2), "pair")
    image.write(store, 0, "t")
    anew = read_anew(store, in_memory=False)
    assert (anew.get(1.0), anew.get(("a", 2.0))) == ("one", "pair")
    with pytest.raises(TypeError, match=r"frozenset\(\{1\}\) cannot be a key .* use text"):
        image.put(frozenset({1}), 0)
