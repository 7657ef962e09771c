"""Keys with a time to live, against a plain model, with both back ends and aborted batches."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.packets.batch_info import BatchInfo
from sparkstorm.packets.inbox import Inbox
from sparkstorm.state.expiring import Expiring
from sparkstorm.state.image import StateImage
from sparkstorm.state.spaces.key_values import KeyValues
from sparkstorm.state.spaces.undo import Call
from sparkstorm.state.stores import MemoryStore

TTL = 10.0
changes = st.lists(
    st.tuples(st.sampled_from(["put", "put", "add", "delete", "undone"]), st.integers(0, 5))
)
batches = st.lists(
    st.tuples(
        st.integers(0, 1),  # which process runs it
        st.sampled_from([0.0, 0.04, 0.1, 3.0, 7.0, 9.96, 500.0]) | st.floats(0, 12),  # its pause
        changes,
        st.sampled_from(["commit", "commit", "abort", "break off", "lose"]),
        st.sampled_from([TTL, TTL, TTL, None, 1.0, 400.0]),  # the time to live then
    ),
    max_size=20,
)


@dataclass(frozen=True)
class Put:
    """A key of the model: its value, when it was last put, and how much later it may go."""

    value: int
    time: float = 0.0
    late: float = 0.0


class Process:
    """A worker process that runs batches; the code may be another one each time."""

    def __init__(self, in_memory: bool) -> None:
        self.in_memory = in_memory
        self.ttl: float | None = TTL
        self.image = StateImage(in_memory=in_memory)

    def begin(self, store: MemoryStore, version: int, time: float, ttl: float | None) -> Any:
        """Start a batch and return the state."""
        if ttl != self.ttl:
            self.ttl, self.image = ttl, StateImage(in_memory=self.in_memory)
        self.image.load(store)
        self.image.begin(Inbox((), 1, BatchInfo(number=version, time=time)), ())
        return self.image.named("state", ttl_secs=ttl)


@pytest.mark.parametrize("in_memory", [True, False], ids=["memory", "rocksdb"])
@given(history=batches)
def test_a_key_goes_when_it_was_not_put_for_so_long(
    in_memory: bool, history: list[tuple[int, float, Any, str, float | None]]
) -> None:
    """Never before, and a hundredth later at most, in each run of the batch.

    A key without a time begins to live when the state gets one.
    """
    store, now = MemoryStore(), 1000.0
    processes = [Process(in_memory) for _ in range(2)]
    model: dict[int, Put] = {}
    had: float | None = TTL
    for version, (number, passed, todo, end, ttl) in enumerate(history):
        now += passed
        late = 0.0 if ttl is None else ttl / 100
        other = processes[1 - number].begin(store, version, now, ttl)
        state = processes[number].begin(store, version, now, ttl)
        assert list(state.items()) == list(other.items())
        known = {
            key: put if had is not None else Put(put.value, now, late) for key, put in model.items()
        }
        after = {key: put for key, put in known.items() if key in state}
        assert dict(state.items()) == {key: put.value for key, put in after.items()}
        assert len(state) == len(after)
        for key, put in known.items():
            if ttl is None or put.time + ttl > now:
                assert key in after
            elif put.time + put.late + ttl + 1e-9 <= now:
                assert key not in after
        for what, key in todo:
            processes[number].image.call.changes = 0
            if what == "put":
                state.put(key, version)
                after[key] = Put(version, now, late)
            elif what == "add":
                total = after[key].value + version if key in after else version
                assert state.add(key, version) == total
                after[key] = Put(total, now, late)
            elif what == "delete":
                state.delete(key)
                after.pop(key, None)
            else:
                state.put(key, -1)
                processes[number].image.call.undo()
        if end == "lose":
            processes[number] = Process(in_memory)
        if end in ("lose", "break off"):
            continue
        image = processes[number].image
        image.finish()
        image.write(store, version, f"{version}")
        if end == "commit":
            store.commit()
            model, had = after, ttl
        else:
            store.rollback()


@pytest.mark.sweep
def test_what_a_batch_writes_does_not_grow_with_those_before_it() -> None:
    """Nor does the state, if it is the same keys that are put."""
    process, store, sizes = Process(in_memory=True), MemoryStore(), []
    for version in range(3000):
        state = process.begin(store, version, 1000.0 + version, 7 * 86_400.0)
        state.put(version % 10, 0)
        process.image.finish()
        process.image.write(store, version, f"{version}")
        store.commit()
        sizes.append(len(store.get(f"log/{version}") or b""))
    assert max(sizes[1000:]) <= max(sizes[:100])
    assert sum(len(data) for _, data in store.entries("")) < 30_000


def spaces() -> tuple[KeyValues, KeyValues, KeyValues]:
    """The values, the times and what is due, each empty."""
    call = Call()
    return KeyValues("values", call), KeyValues("times", call), KeyValues("due", call)


def test_there_are_no_more_spans_than_in_a_time_to_live() -> None:
    """However many batches there are in it; after a pause none is left."""
    values, times, due = spaces()
    state = Expiring(values, times, due, 300.0)
    for version in range(1000):
        state.begin(1000.0 + version)
        state.put(version, version)
        state.finish()
        for space in (values, times, due):
            space.commit()
        assert len(due.get("batches")) <= 102
    state.begin(10_000.0)
    assert (len(values), len(times), dict(due.items())) == (0, 0, {"batches": []})


def test_keys_of_a_span_go_together_when_the_last_of_them_may() -> None:
    """Which is so long after the span ends, a hundredth of the time to live after it began."""
    state = Expiring(*spaces(), TTL)
    for now, key in [(1000.0, "a"), (1000.06, "b")]:
        state.begin(now)
        state.put(key, 0)
        state.finish()
    state.begin(1010.09)
    assert set(state) == {"a", "b"}
    state.begin(1010.11)
    assert set(state) == set()


def test_a_shorter_time_to_live_has_shorter_spans_at_once() -> None:
    """A span that was begun with the longer one is not used any more."""
    kept = spaces()
    for now, ttl, key in [(1000.0, 1000.0, "long"), (1001.0, 1.0, "short")]:
        state = Expiring(*kept, ttl)
        state.begin(now)
        state.put(key, 0)
        state.finish()
    state.begin(1002.02)
    assert set(state) == {"long"}


@pytest.mark.parametrize(
    ("now", "left"),
    [(1003.95, set()), (1004.0, {"c", "d"}), (1012.0, {"c", "d"})],
    ids=["before its last batch", "with it", "later"],
)
def test_a_state_of_a_version_without_spans_goes_on(now: float, left: set[str]) -> None:
    """There, each batch had listed its keys under its time."""
    values, times, due = earlier = spaces()
    batches = {1000.0: ["a", "b"], 1004.0: ["b", "c"]}
    for time, keys in batches.items():
        due.put(time, keys)
        for key in keys:
            values.put(key, 0)
            times.put(key, time)
    due.put("batches", list(batches))
    for space in earlier:
        space.commit()
    state = Expiring(*earlier, TTL)
    state.begin(now)
    assert set(state) == ({"a", "b", "c"} if now < 1010 else {"b", "c"})
    for key in "cd":
        state.put(key, 1)
    state.finish()
    state.begin(1014.0)
    assert set(state) == left
    state.begin(1023.0)
    assert (len(values), len(times), dict(due.items())) == (0, 0, {"batches": []})


def test_what_was_noted_for_a_time_to_live_goes_with_it() -> None:
    """The keys stay, for ever now."""
    values, times, due = kept = spaces()
    state = Expiring(*kept, TTL)
    state.begin(1000.0)
    state.put("k", 1)
    state.finish()
    Expiring(*kept, None).begin(1001.0)
    assert (dict(values.items()), len(times), len(due)) == ({"k": 1}, 0, 0)


def test_what_an_execute_put_that_raised_is_not_due() -> None:
    """Its keys were never put, so they keep their time."""
    process, store = Process(in_memory=True), MemoryStore()
    for version, time in enumerate((0.0, 6.0)):
        state = process.begin(store, version, time, TTL)
        process.image.call.changes = 0
        state.put("k", version)
        if time:
            process.image.call.undo()
        process.image.finish()
        process.image.write(store, version, f"{version}")
        store.commit()
    assert dict(process.begin(store, 2, 9.0, TTL).items()) == {"k": 0}
    assert dict(process.begin(store, 3, 11.0, TTL).items()) == {}


def test_a_state_has_one_time_to_live() -> None:
    """Asking for it with two is a mistake of the bolt."""
    image = StateImage()
    image.named("state", ttl_secs=1)
    with pytest.raises(ValueError, match="'state' has ttl_secs=1"):
        image.named("state")
