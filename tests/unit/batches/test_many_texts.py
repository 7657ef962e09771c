"""Errors that quote their message: as many texts as messages, and yet one cause for people."""

import pytest

import sparkstorm as ss
from sparkstorm.tasks.report import LogLine
from sparkstorm.testing import FeederSpout, LocalRunner, ManualClock

MESSAGES = 3000


class Away(ss.BasicBolt):
    """Writes to a database that is away."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Say for which key it did not answer."""
        raise ConnectionError(f"no answer for the key {tup['n']}")


class Refusing(ss.BasicBolt):
    """Refuses all in one and the same way."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Say nothing about the key."""
        raise ConnectionError("no answer")


def run(bolt: ss.BasicBolt, ackers: int) -> FeederSpout:
    """Fail all messages once."""
    feeder = FeederSpout("n int")
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", feeder)
    builder.set_bolt("away", bolt, 2).shuffle_grouping("numbers")
    config = ss.Config(
        acker_executors=ackers, batch_min_messages=MESSAGES, batch_max_messages=MESSAGES
    )
    topology = builder.create_topology()
    with LocalRunner(topology, clock=ManualClock(), config=config) as runner:
        for n in range(MESSAGES):
            feeder.feed([n], msg_id=n)
        runner.run_until_idle()
    return feeder


@pytest.mark.sweep
def test_every_message_fails_and_some_keep_their_text(lines: list[LogLine]) -> None:
    """The others share one that says so; the log names five, and no more."""
    feeder = run(Away(), ackers=1)
    assert sorted(feeder.failed) == list(range(MESSAGES))
    own = {
        msg_id
        for msg_id, why in zip(feeder.failed, feeder.failures, strict=True)
        if why.message == f"ConnectionError: no answer for the key {msg_id}"
    }
    others = {why.message for why in feeder.failures if "all the others" in why.message}
    assert 900 < len(own) <= 1000
    assert 1 <= len(others) <= 3
    assert {(why.reason, why.component) for why in feeder.failures} == {(ss.Reason.ERROR, "away")}
    assert len(lines) == 5
    assert lines[4].text.endswith("of the kind 'ConnectionError' are counted and not told")


def test_one_cause_is_told_once(lines: list[LogLine]) -> None:
    """Of however many messages."""
    feeder = run(Refusing(), ackers=3)
    assert len(feeder.failed) == MESSAGES
    assert {why.message for why in feeder.failures} == {"ConnectionError: no answer"}
    assert len({id(why) for why in feeder.failures}) == 2, "one object for each task that told it"
    assert len(lines) == 1
    assert "a message failed: error in away (task" in lines[0].text
