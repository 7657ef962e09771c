"""Keys with a time to live, against a plain model, with both back ends and aborted batches."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.execution.batch import BatchInfo
from sparkstorm.execution.inbox import Inbox
from sparkstorm.execution.state_log import MemoryStore, StateImage

TTL = 10.0
changes = st.lists(st.tuples(st.sampled_from(["put", "add", "delete"]), st.integers(0, 5)))
batches = st.lists(
    st.tuples(
        st.integers(0, 1),  # which process runs it
        st.sampled_from([0.0, 3.0, 7.0]),  # seconds since the one before
        changes,
        st.sampled_from(["commit", "commit", "abort", "break off"]),
        st.sampled_from([True, True, True, False]),  # whether it has a time to live then
    ),
    max_size=20,
)


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
    in_memory: bool, history: list[tuple[int, float, Any, str, bool]]
) -> None:
    """And no other; a key without a time begins to live when the state gets one."""
    store, now = MemoryStore(), 1000.0
    processes = [Process(in_memory) for _ in range(2)]
    model: dict[int, tuple[int, float | None]] = {}
    for version, (number, passed, todo, end, lives) in enumerate(history):
        now += passed
        ttl = TTL if lives else None
        state = processes[number].begin(store, version, now, ttl)
        after = {
            key: (value, (now if time is None else time) if lives else None)
            for key, (value, time) in model.items()
            if not lives or time is None or time + TTL > now
        }
        assert dict(state.items()) == {key: value for key, (value, _) in after.items()}
        assert len(state) == len(after)
        for what, key in todo:
            if what == "put":
                state.put(key, version)
                after[key] = version, now if lives else None
            elif what == "add":
                total = after.get(key, (0, None))[0] + version
                assert state.add(key, version) == total
                after[key] = total, now if lives else None
            else:
                state.delete(key)
                after.pop(key, None)
        if end == "break off":
            continue
        image = processes[number].image
        image.finish()
        image.write(store, version, f"{version}")
        if end == "commit":
            store.commit()
            model = after
        else:
            store.rollback()


def test_what_an_execute_put_that_raised_is_not_due() -> None:
    """Its keys were never put, so they keep their time."""
    process, store = Process(in_memory=True), MemoryStore()
    for version, time in enumerate((0.0, 6.0)):
        state = process.begin(store, version, time, TTL)
        process.image.call.space = None
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
