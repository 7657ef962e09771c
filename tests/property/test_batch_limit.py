"""The limit of a batch, for spouts of any kind, whatever fails, and over restarts."""

from collections import Counter
from contextlib import suppress
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import sparkstorm as ss
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.local.runner import LocalRunner
from sparkstorm.testing import LogSpout, ManualClock, RequeueSpout
from sparkstorm.testing.internal.shared import Shared

_TURNS = 500


class _World(Shared):
    """What a bolt does to messages, and has seen of them in the batch that runs."""

    def __init__(self, failures: dict[str, int]) -> None:
        super().__init__()
        self.failures = Counter(failures)
        self.away = True
        self.batch: list[str] = []
        self.done: set[str] = set()


class _Bolt(ss.BasicBolt):
    """Fails what it is told to so many times, and everything while its database is away."""

    def __init__(self, world: _World) -> None:
        self.world = world

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Fail, or be done with it."""
        name = tup["name"]
        self.world.batch.append(name)
        if self.world.away or self.world.failures[name] > 0:
            self.world.failures[name] -= not self.world.away
            raise ValueError(name)
        self.world.done.add(name)


class _Death(BaseException):
    """The driver dies, with a batch under way."""


_SPOUTS = st.lists(
    st.tuples(st.sampled_from([LogSpout, RequeueSpout]), st.integers(0, 15), st.integers(1, 3)),
    min_size=1,
    max_size=3,
)


@settings(max_examples=settings().max_examples // 2)
@given(
    spouts=_SPOUTS,
    limit=st.integers(1, 12),
    outage=st.integers(0, 8),
    pending=st.none() | st.integers(1, 30),
    failing=st.sets(st.integers(0, 14)),
    ends=st.dictionaries(st.integers(1, 15), st.booleans(), max_size=3),
)
def test_no_batch_is_larger_than_its_limit(
    spouts: list[tuple[Any, int, int]],
    limit: int,
    outage: int,
    pending: int | None,
    failing: set[int],
    ends: dict[int, bool],
) -> None:
    """Every message comes in the end, and none is twice in a batch."""
    builder = ss.TopologyBuilder()
    names = [[f"{n}/{row}" for row in range(rows)] for n, (_, rows, _) in enumerate(spouts)]
    every = [name for of_spout in names for name in of_spout]
    world = _World({name: 2 for name in every if int(name.split("/")[1]) in failing})
    declarer = builder.set_bolt("bolt", _Bolt(world), 2)
    for n, (kind, _, tasks) in enumerate(spouts):
        rows = [[name] for name in names[n]]
        builder.set_spout(f"s{n}", kind(rows, "name string"), tasks)
        declarer.shuffle_grouping(f"s{n}")
    topology, files, clock = builder.create_topology(), MemoryFiles(), ManualClock()
    config = ss.Config(
        batch_max_messages=limit,
        max_spout_pending=pending,
        max_retries=None,
        retry_backoff_secs=1.0,
        retry_backoff_max_secs=1.0,
    )

    def live(start: int, stop: int) -> None:
        """Let a driver live for so many turns; it ends in good order, or not."""
        with LocalRunner(topology, config=config, clock=clock, files=files) as runner:
            for turn in range(start, stop):
                world.away = turn < outage
                clock.advance(0.5 if turn % 2 else 0.0)
                world.batch.clear()
                busy = runner.step()
                assert len(world.batch) <= limit
                assert len(set(world.batch)) == len(world.batch), "one is there twice"
                if not busy and runner.coordinator.drained:
                    break
            if not ends.get(stop, True):
                runner.ask_spouts()
                runner.plan_batch()
                raise _Death

    for start, stop in pairwise([0, *sorted(ends), _TURNS]):
        with suppress(_Death):
            live(start, stop)
    assert world.done == set(every)
