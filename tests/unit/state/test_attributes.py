"""Attributes as state, against a plain copy, through aborted batches and in several processes."""

import threading
from copy import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparkstorm as ss
from sparkstorm.errors import AttributeStateError
from sparkstorm.state.attributes import AttributeKeeper
from sparkstorm.state.image import StateImage
from sparkstorm.state.stores import MemoryStore

names = st.sampled_from(["built", "prepared", "later", "more"])
changes = st.lists(
    st.tuples(st.just("set"), names, st.integers(0, 3) | st.lists(st.integers(0, 3), max_size=2))
    | st.tuples(st.just("append"), names, st.integers(0, 3))
    | st.tuples(st.just("delete"), names, st.none()),
    max_size=4,
)
ends = st.sampled_from(["commit", "commit", "abort", "break off"])


class Free(ss.BasicBolt):
    """Does what the test wants with its attributes."""

    stateful = True
    transient = ("cache",)

    def __init__(self, built: int) -> None:
        self.built = built

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Nothing."""


class Process:
    """A worker process with its own copy of the bolt."""

    def __init__(self, built: int = 7) -> None:
        self.bolt = Free(built)
        self.bolt.prepared = [1]  # type: ignore[attr-defined]
        self.bolt.lock = threading.Lock()  # type: ignore[attr-defined]
        self.image = StateImage()
        self.keeper = AttributeKeeper("bolt", self.bolt, self.image.attributes)

    def attributes(self) -> dict[str, Any]:
        """What is kept."""
        left = ("lock", "cache")
        return {name: value for name, value in vars(self.bolt).items() if name not in left}


def change(attributes: dict[str, Any], todo: list[tuple[str, str, Any]]) -> None:
    """Do what was drawn."""
    for what, name, value in todo:
        if what == "set":
            attributes[name] = copy(value)
        elif what == "delete":
            attributes.pop(name, None)
        elif isinstance(attributes.get(name), list):
            attributes[name].append(value)


@given(st.lists(st.tuples(st.integers(0, 2), changes, ends), max_size=15))
def test_every_process_sees_what_was_committed(history: list[tuple[int, Any, str]]) -> None:
    """Attributes are as of the last committed batch, whoever runs the next one."""
    store, processes = MemoryStore(), [Process() for _ in range(3)]
    model = Process().attributes()
    for version, (number, todo, end) in enumerate(history):
        process = processes[number]
        process.image.load(store)
        process.keeper.bring()
        assert process.attributes() == model
        change(vars(process.bolt), todo)
        if end == "break off":
            continue
        process.keeper.keep()
        process.image.write(store, version, f"{version}")
        if end == "commit":
            store.commit()
            change(model, todo)
        else:
            store.rollback()


def run(process: Process, store: MemoryStore, version: int, **values: Any) -> None:
    """Run a batch that sets some attributes."""
    process.image.load(store)
    process.keeper.bring()
    vars(process.bolt).update(values)
    process.keeper.keep()
    process.image.write(store, version, f"{version}")
    store.commit()


def test_what_a_bolt_was_built_with_may_change() -> None:
    """Only what has changed since prepare is kept: settings in attributes are the code's."""
    store = MemoryStore()
    run(Process(built=7), store, 0, total=1)
    other = Process(built=8)
    run(other, store, 1)
    assert other.attributes() == {"built": 8, "prepared": [1], "total": 1}


def test_what_cannot_be_pickled_is_named() -> None:
    """A connection made while executing would be lost silently."""
    store = MemoryStore()
    run(Process(), store, 0, cache=threading.Lock())
    with pytest.raises(AttributeStateError, match="attribute 'late' cannot be pickled: name it in"):
        run(Process(), store, 1, late=threading.Lock())
