"""State shown to people: all of it, and without running what a pickle may ask for."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.state.image import StateImage
from sparkstorm.state.spaces.base import entry_id
from sparkstorm.state.stores import MemoryStore
from sparkstorm.state.view import Item, items_of, items_of_entry
from sparkstorm.testing import FeederSpout, LocalRunner, ManualClock


class Account:
    """A class of a topology, which whoever looks at its state need not have."""

    def __init__(self, owner: str) -> None:
        self.owner = owner


class Evil:
    """Runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


def written(*, in_memory: bool = True, **values: Any) -> MemoryStore:
    """The store of a task that has put some values in some batches."""
    store, image = MemoryStore(), StateImage(in_memory=in_memory)
    for version, (key, value) in enumerate(values.items()):
        image.load(store)
        image.put(key, value)
        image.put("gone", version)
        image.delete("gone")
        image.named("more").put((key, version), value)
        image.write(store, version, f"{version}")
        store.commit()
    return store


@pytest.mark.parametrize("in_memory", [True, False])
def test_all_that_is_committed_is_shown(in_memory: bool) -> None:
    """Plain values, pickled ones, and those of named states."""
    values = {"a": 1, "b": [1, (2,)], "c": Counter("aab")}
    store = written(in_memory=in_memory, **values)
    items = list(items_of(store))
    for name, data in store.entries("key/"):
        items += items_of_entry(name, data)
    assert sorted(items, key=repr) == sorted(
        [
            *(Item("", key, value) for key, value in values.items()),
            *(Item("more", (key, n), value) for n, (key, value) in enumerate(values.items())),
        ],
        key=repr,
    )
    if not in_memory:
        assert [name for name, _ in store.entries("key//") if name.endswith(entry_id("a"))]


def test_objects_of_other_classes_are_shown_by_name() -> None:
    """Nobody needs the topology's code to look at its state."""
    (item, _) = items_of(written(account=Account("Ann")))
    assert repr(item.value) == f"<{__name__}.Account: {{'owner': 'Ann'}}>"


class Hold(ss.StatefulBolt):
    """Holds every tuple."""

    def execute(self, tup: ss.Tuple) -> None:
        """Hold it."""
        self.state.tuples("waiting").add(tup["key"], tup)


class Total(ss.BasicBolt):
    """Keeps a total in an attribute."""

    stateful = True
    total = 0

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Add."""
        self.total += tup["n"]


def test_held_tuples_and_attributes_are_shown() -> None:
    """A tuple by its fields, under the key that it is held under; an attribute by its name."""
    feeder, builder = FeederSpout("key string, n long"), ss.TopologyBuilder()
    builder.set_spout("feeder", feeder)
    builder.set_bolt("hold", Hold()).shuffle_grouping("feeder")
    builder.set_bolt("total", Total()).shuffle_grouping("feeder")
    with LocalRunner(builder.create_topology(), clock=ManualClock()) as runner:
        feeder.feed(["k", 7], msg_id=1)
        runner.run_until_idle()
        shown = {name: list(items_of(store)) for name, store in runner._jobs.stores().items()}
    assert shown == {
        "hold/0": [Item("tuples/waiting", "k", {"key": "k", "n": 7})],
        "total/0": [Item("attributes", "total", 7)],
    }


def test_nothing_that_a_pickle_names_is_called(tmp_path: Path) -> None:
    """A checkpoint may come from anywhere; looking at it must not run commands."""
    store = written(evil=Evil(tmp_path / "ran"))
    (item, _) = items_of(store)
    assert "touch" in repr(item.value)
    assert not (tmp_path / "ran").exists()
