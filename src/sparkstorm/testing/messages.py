"""Run one message through a topology: what a dead letter's test does."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparkstorm.components.committer import CommitterBolt
from sparkstorm.config import Config
from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.errors import ConfigError
from sparkstorm.local.failing_call import FailingCall
from sparkstorm.local.one_message import OneMessage, OpenStore
from sparkstorm.planning.passes import make_plan
from sparkstorm.planning.plan import Plan
from sparkstorm.state.image import state_of
from sparkstorm.state.stores import MemoryStore
from sparkstorm.streams import DEFAULT_STREAM
from sparkstorm.topology.graph import Topology
from sparkstorm.verdicts import Failure, Reason

__all__ = [
    "MessageFailed",
    "given_state",
    "letter_of",
    "plan_for_one",
    "read_payload",
    "run_message",
]


class MessageFailed(AssertionError):
    """A bolt failed the message without an exception; ``failure`` says which bolt, and why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


def run_message(
    topology: Topology,
    spout: str,
    payload: Mapping[str, Any],
    *,
    until: str | None = None,
    stream: str = DEFAULT_STREAM,
    direct: tuple[str, int] | None = None,
    state: Mapping[str, Mapping[Any, Any]] | None = None,
    config: Config | None = None,
) -> None:
    """Run one message through a topology in this process; raise if the message fails.

    Bolts run for real. No spout runs, no committer commits, and nothing is acked
    or kept.

    Args:
        topology: the topology.
        spout: the id of the spout that emits the message.
        payload: the values of the message, by field.
        until: the last bolt that gets tuples, with all components before it; None for all bolts.
        stream: the stream of the message.
        direct: on a direct stream, the receiving component and the number of its task, from 0.
        state: for stateful bolts, the keys and values that each task has before; else none.
        config: the settings.

    Raises:
        Exception: the very error that a bolt raised.
        MessageFailed: a bolt failed the message without an error.
        ConfigError: the payload does not fit the spout's stream, or there is no such bolt.

    >>> import sparkstorm as ss
    >>> class Parse(ss.BasicBolt):
    ...     outputs = "n long"
    ...     def execute(self, tup, collector):
    ...         collector.emit([int(tup["text"])])
    >>> builder = ss.TopologyBuilder()
    >>> _ = builder.set_spout("lines", ss.spouts.IteratorSpout([], "text string"))
    >>> _ = builder.set_bolt("parse", Parse()).shuffle_grouping("lines")
    >>> run_message(builder.create_topology(), "lines", {"text": "1"})
    >>> run_message(builder.create_topology(), "lines", {"text": "two"})
    Traceback (most recent call last):
    ValueError: invalid literal for int() with base 10: 'two'
    """
    __tracebackhide__ = True
    letter = letter_of(spout, payload, stream=stream, direct=direct)
    failing, plan = FailingCall(), plan_for_one(topology, config)
    ending = OneMessage(plan, letter, until=until, open_store=given_state(plan, state)).run(failing)
    if ending.failure is not None:
        if failing.error is not None:
            raise failing.error
        raise MessageFailed(ending.failure)


def read_payload(path: str | Path) -> dict[str, Any]:
    """Return the payload of a dead letter from a file with the letter's JSON.

    The file is as ``sparkstorm dead-letters show ID --json`` writes it.

    Raises:
        ValueError: the file holds no dead letter, or a letter whose payload is not known.
    """
    letter = DeadLetter.from_json(json.loads(Path(path).read_text(encoding="utf-8")))
    if letter.payload is None:
        raise ValueError(f"the payload of the dead letter {letter.id} is not known: {letter.note}")
    return letter.payload


def plan_for_one(
    topology: Topology, config: Config | None = None, *, name: str = "local", partitions: int = 2
) -> Plan:
    """Return the plan of a topology for one message: tracked, with the guarantee of its bolts."""
    config = config or Config()
    if any(isinstance(spec.component, CommitterBolt) for spec in topology.bolts):
        config = config.override({"processing_guarantee": "exactly-once"})
    if config.acker_executors == 0:
        config = config.override({"acker_executors": 1})
    return make_plan(topology, name=name, config=config, partitions=partitions)


def given_state(plan: Plan, state: Mapping[str, Mapping[Any, Any]] | None) -> OpenStore:
    """Return the stores of tasks whose bolts begin with these keys and values.

    Raises:
        ConfigError: a component with state is not stateful.
    """
    for component in state or {}:
        if component not in plan.stateful_components():
            raise ConfigError(f"{component!r} is no stateful bolt of the topology")

    def open_store(task: str) -> MemoryStore:
        component, store = task.rpartition("/")[0], MemoryStore()
        image = state_of(plan, component)
        image.load(store)
        for key, value in (state or {}).get(component, {}).items():
            image.put(key, value)
        image.write(store, 0, "given")
        store.commit()
        return store

    return open_store


def letter_of(
    spout: str,
    payload: Mapping[str, Any],
    *,
    stream: str = DEFAULT_STREAM,
    direct: tuple[str, int] | None = None,
) -> DeadLetter:
    """Return a letter with a payload, as if a first attempt had failed."""
    return DeadLetter(
        id="of a test",
        topology="local",
        run="",
        spout=spout,
        task=0,
        stream=stream,
        fields=tuple(payload),
        values=tuple(payload.values()),
        direct=direct,
        failure=Failure(reason=Reason.ERROR),
        attempts=1,
        first_time=0.0,
        last_time=0.0,
    )
